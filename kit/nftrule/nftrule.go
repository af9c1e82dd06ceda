// Package nftrule writes the parts of firewall rules that our tables share, as the kernel takes them: no
// iptables or nft program is needed.
package nftrule

import (
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Field is an address of a packet.
type Field int

// The addresses of a packet.
const (
	Source Field = iota
	Destination
)

// Offset is where the header of the family has the address.
func (f Field) Offset(six bool) uint32 {
	offset, length := uint32(12), uint32(4)
	if six {
		offset, length = 8, 16
	}
	if f == Destination {
		offset += length
	}
	return offset
}

// Address compares the network part of an address of the packet with a prefix. The rule sees packets of the prefix's
// family only: it is of a table of that family, or something before it looks at the family.
func Address(field Field, how expr.CmpOp, prefix netip.Prefix) []expr.Any {
	return AddressAt(expr.PayloadBaseNetworkHeader, field.Offset(prefix.Addr().Is6()), how, prefix)
}

// AddressAt is Address for an address that a header has somewhere else.
func AddressAt(header expr.PayloadBase, offset uint32, how expr.CmpOp, prefix netip.Prefix) []expr.Any {
	address := prefix.Masked().Addr()
	length := uint32(address.BitLen() / 8)
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: header, Offset: offset, Len: length},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: length,
			Mask: net.CIDRMask(prefix.Bits(), address.BitLen()), Xor: make([]byte, length)},
		&expr.Cmp{Op: how, Register: 1, Data: address.AsSlice()},
	}
}

// NotIn matches packets of the family whose address is none of the set.
func NotIn(field Field, six bool, set *nftables.Set) []expr.Any {
	length := uint32(4)
	if six {
		length = 16
	}
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: field.Offset(six), Len: length},
		&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID, Invert: true},
	}
}

// Port compares the transport protocol and the destination port, which stands at the same place in all of them.
func Port(protocol uint8, port uint16) []expr.Any {
	return append(loadPort(protocol),
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)})
}

// Ports is like Port of all ports from the first to the last, both included.
func Ports(protocol uint8, first, last uint16) []expr.Any {
	return append(loadPort(protocol),
		&expr.Cmp{Op: expr.CmpOpGte, Register: 1, Data: binaryutil.BigEndian.PutUint16(first)},
		&expr.Cmp{Op: expr.CmpOpLte, Register: 1, Data: binaryutil.BigEndian.PutUint16(last)})
}

func loadPort(protocol uint8) []expr.Any {
	const portOffset, portLength = 2, 2
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: portOffset, Len: portLength},
	}
}

// To sends what matches to a target.
func To(target netip.AddrPort) []expr.Any {
	return []expr.Any{
		&expr.Counter{},
		&expr.Immediate{Register: 1, Data: target.Addr().AsSlice()},
		&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(target.Port())},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2},
	}
}

// Local matches packets to an address of the machine itself.
func Local() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
}

// Redirected matches packets of connections that were sent to a target.
func Redirected() []expr.Any {
	const destinationChanged = 1 << 5 // IPS_DST_NAT of the kernel
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATUS, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(destinationChanged), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}

// FromInterfaces matches packets that came in by an interface whose name begins so.
func FromInterfaces(prefix string) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte(prefix)},
	}
}

// Masquerade gives what matches the machine's own address.
func Masquerade() []expr.Any { return []expr.Any{&expr.Counter{}, &expr.Masq{}} }

// Drop ends what matches.
func Drop() []expr.Any {
	return []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}
}
