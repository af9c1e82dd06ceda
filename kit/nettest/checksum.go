package nettest

import "encoding/binary"

// Checksum is that of the Internet (RFC 1071), for packets that a test makes itself: where it will stand there is zero.
func Checksum(data []byte) uint16 {
	sum := uint32(0)
	for ; len(data) > 1; data = data[2:] {
		sum += uint32(binary.BigEndian.Uint16(data))
	}
	if len(data) == 1 {
		sum += uint32(data[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
