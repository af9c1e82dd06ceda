package table

import (
	"net/netip"
	"slices"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/nftrule"
)

// masqueradeMark is the bit of a packet's mark by which rules request masquerading. Kubernetes has always used this
// bit for it, so other programs leave it alone.
const masqueradeMark = 1 << 14

// registers are the registers in which a rule keeps what it looks up. They are adjacent so that each key of a set
// is contiguous: client, ID, place, address, port.
type registers struct {
	ipv6                          bool
	words                         uint32 // of an address
	client, id, place, addr, port uint32
	nfproto                       byte
}

const firstRegister = unix.NFT_REG32_00

var families = []registers{registersOf(false), registersOf(true)}

func registersOf(ipv6 bool) registers {
	r := registers{ipv6: ipv6, words: 1, nfproto: unix.NFPROTO_IPV4}
	if ipv6 {
		r.words, r.nfproto = 4, unix.NFPROTO_IPV6
	}
	r.client = firstRegister
	r.id = r.client + r.words
	r.place = r.id + 4
	r.addr = r.place + 1
	r.port = r.addr + r.words
	return r
}

func (r registers) name(name string) string { return family(name, r.ipv6) }

// ofFamily matches packets of the family.
func (r registers) ofFamily() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: firstRegister},
		&expr.Cmp{Op: expr.CmpOpEq, Register: firstRegister, Data: []byte{r.nfproto}},
	}
}

func (r registers) load(field nftrule.Field, register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: field.Offset(r.ipv6),
		Len: 4 * r.words}
}

// destination loads the packet's destination, encoded as keys of sets are, into the first registers.
func (r registers) destination() []expr.Any {
	const portOffset, portLength = 2, 2
	return []expr.Any{
		r.load(nftrule.Destination, firstRegister),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: firstRegister + r.words},
		&expr.Payload{DestRegister: firstRegister + r.words + 1, Base: expr.PayloadBaseTransportHeader,
			Offset: portOffset, Len: portLength},
	}
}

// in matches what is in a set.
func (r registers) in(set string, register uint32) expr.Any {
	return &expr.Lookup{SourceRegister: register, SetName: r.name(set)}
}

// lookUp loads a value of a map.
func (r registers) lookUp(set string, key, value uint32) expr.Any {
	return &expr.Lookup{SourceRegister: key, DestRegister: value, IsDestRegSet: true, SetName: r.name(set)}
}

// lookUpPort matches packets to a port and loads its ID, with the class in the register of the place.
func (r registers) lookUpPort() []expr.Any {
	return append(r.destination(), r.lookUp(setPorts, firstRegister, r.id))
}

func (r registers) scope(scope uint32) expr.Any {
	return &expr.Immediate{Register: r.place, Data: []byte(word(scope))}
}

func (r registers) dnat() expr.Any {
	return &expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(r.nfproto), RegAddrMin: r.addr, RegProtoMin: r.port}
}

func jumpTo(chain string) expr.Any { return &expr.Verdict{Kind: expr.VerdictJump, Chain: chain} }
func goTo(chain string) expr.Any   { return &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain} }

// markForMasquerade marks a packet to be masqueraded when it leaves.
func markForMasquerade() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: 4,
			Mask: native(^uint32(masqueradeMark)), Xor: native(masqueradeMark)},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister, SourceRegister: true},
	}
}

func native(n uint32) []byte { return binaryutil.NativeEndian.PutUint32(n) }

// source compares the source address with a range.
func (r registers) source(how expr.CmpOp, prefix netip.Prefix) []expr.Any {
	return []expr.Any{
		r.load(nftrule.Source, firstRegister),
		r.masked(firstRegister, prefix.Bits()),
		&expr.Cmp{Op: how, Register: firstRegister, Data: prefix.Masked().Addr().AsSlice()},
	}
}

func (r registers) masked(register uint32, bits int) expr.Any {
	return &expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4 * r.words,
		Mask: r.mask(bits), Xor: make([]byte, 4*r.words)}
}

// mask returns a mask of that many bits.
func (r registers) mask(bits int) []byte {
	all := netip.AddrFrom4([4]byte(slices.Repeat([]byte{0xff}, 4)))
	if r.ipv6 {
		all = netip.AddrFrom16([16]byte(slices.Repeat([]byte{0xff}, 16)))
	}
	return netip.PrefixFrom(all, bits).Masked().Addr().AsSlice()
}

// sentByNode matches packets that the node itself sends.
func sentByNode() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: firstRegister, FlagSADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: firstRegister, Data: native(unix.RTN_LOCAL)},
	}
}

// newConnection matches packets that begin a connection.
func newConnection() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: firstRegister},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: 4,
			Mask: native(expr.CtStateBitNEW), Xor: native(0)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: firstRegister, Data: native(0)},
	}
}
