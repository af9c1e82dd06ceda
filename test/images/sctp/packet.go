// Package sctp begins associations of SCTP, and answers who begins one, by packets of its own making: kernels without
// SCTP sockets know its packets all the same, and lead them. What an association carries is its answer's state cookie.
package sctp

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// The chunks by which an association begins, and the parameter that the answer to the first must have (RFC 9260, 3.3.2
// and 3.3.3).
const (
	chunkInit    = 1
	chunkInitAck = 2
	stateCookie  = 7
)

const (
	commonHeader = 12 // ports, verification tag, checksum
	chunkHeader  = 4  // type, flags, length
	initBody     = 16 // initiate tag, window, streams, first number
	fixed        = commonHeader + chunkHeader + initBody
)

// packet is a packet with one chunk that begins an association.
type packet struct {
	from, to uint16
	// tag is the initiate tag of the peer that it answers; 0 in the first packet. own is the tag that the answer
	// must have.
	tag, own uint32
	chunk    byte
	// cookie is empty in the first packet.
	cookie string
}

func (p packet) encode() []byte {
	b := make([]byte, fixed)
	binary.BigEndian.PutUint16(b, p.from)
	binary.BigEndian.PutUint16(b[2:], p.to)
	binary.BigEndian.PutUint32(b[4:], p.tag)
	b[commonHeader] = p.chunk
	body := b[commonHeader+chunkHeader:]
	binary.BigEndian.PutUint32(body, p.own)
	binary.BigEndian.PutUint32(body[4:], 1<<16)
	body[9], body[11] = 1, 1 // streams out and in
	if p.chunk == chunkInitAck {
		b = binary.BigEndian.AppendUint16(b, stateCookie)
		b = binary.BigEndian.AppendUint16(b, uint16(4+len(p.cookie)))
		b = append(b, p.cookie...)
	}
	binary.BigEndian.PutUint16(b[commonHeader+2:], uint16(len(b)-commonHeader))
	for len(b)%4 != 0 { // which the chunk's length does not count
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint32(b[8:], checksum(b))
	return b
}

// checksum is that of a packet whose field for it is zero.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

var errDamaged = errors.New("no whole packet of SCTP that begins an association")

// decode reads a packet that another program may have made.
func decode(b []byte) (packet, error) {
	if len(b) < fixed || b[commonHeader] != chunkInit && b[commonHeader] != chunkInitAck {
		return packet{}, errDamaged
	}
	length := int(binary.BigEndian.Uint16(b[commonHeader+2:]))
	if length < fixed-commonHeader || length > len(b)-commonHeader {
		return packet{}, errDamaged
	}
	zeroed := append([]byte(nil), b...)
	clear(zeroed[8:commonHeader])
	if binary.LittleEndian.Uint32(b[8:]) != checksum(zeroed) {
		return packet{}, errDamaged
	}
	p := packet{from: binary.BigEndian.Uint16(b), to: binary.BigEndian.Uint16(b[2:]),
		tag: binary.BigEndian.Uint32(b[4:]), chunk: b[commonHeader],
		own: binary.BigEndian.Uint32(b[commonHeader+chunkHeader:])}
	p.cookie = cookieOf(b[fixed : commonHeader+length])
	return p, nil
}

// cookieOf finds the state cookie among a chunk's parameters; empty without one.
func cookieOf(parameters []byte) string {
	for len(parameters) >= 4 {
		length := int(binary.BigEndian.Uint16(parameters[2:]))
		if length < 4 || length > len(parameters) {
			return ""
		}
		if binary.BigEndian.Uint16(parameters) == stateCookie {
			return string(parameters[4:length])
		}
		parameters = parameters[min(len(parameters), (length+3)/4*4):]
	}
	return ""
}
