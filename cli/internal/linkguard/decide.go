// Package linkguard restricts a Pod to the addresses that it was given. A container that may send raw packets,
// which container runtimes allow by default, can send any packet on its link: without a guard it can take over the
// traffic of other Pods of its node by using their hardware or IP addresses. The guard filters at the machine's
// end of the link, before the bridge learns anything from the packets.
//
//	decide.go  what is dropped (pure)
//	guard.go   makes it so
package linkguard

import (
	"net/netip"
	"slices"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/nftrule"
)

// Link is the machine's end of a Pod's link.
type Link struct {
	// Name is the interface's.
	Name string
	// Hardware is the address of the Pod's end, Addresses are all IP addresses that the Pod was given.
	Hardware  [6]byte
	Addresses []netip.Addr
}

var (
	ofNobody  = netip.MustParsePrefix("0.0.0.0/32")
	ofNobody6 = netip.MustParsePrefix("::/128")
)

// Offsets of the compared fields in the headers.
const (
	etherSource = 6 // Ethernet: the sender

	arpHardware = 8  // ARP: the sender's hardware address
	arpAddress  = 14 // and its IP address

	icmpTarget          = 8   // ICMPv6: the address that an advertisement is about
	routerAdvertisement = 134 // of its types, RFC 4861
	advertisement       = 136
	redirect            = 137
)

// dropped returns the matches of the rules that drop packets.
func (l Link) dropped() [][]expr.Any {
	four := outside(expr.PayloadBaseNetworkHeader, nftrule.Source.Offset(false), l.of(false))
	six := outside(
		expr.PayloadBaseNetworkHeader,
		nftrule.Source.Offset(true),
		append(l.of(true), l.linkLocal(), ofNobody6),
	)
	sender := outside(expr.PayloadBaseNetworkHeader, arpAddress, append(l.of(false), ofNobody))
	told := outside(expr.PayloadBaseTransportHeader, icmpTarget, append(l.of(true), l.linkLocal()))
	return [][]expr.Any{
		field(expr.PayloadBaseLLHeader, etherSource, expr.CmpOpNeq, l.Hardware[:]),
		slices.Concat(frame(expr.CmpOpEq, unix.ETH_P_ARP),
			field(expr.PayloadBaseNetworkHeader, arpHardware, expr.CmpOpNeq, l.Hardware[:])),
		slices.Concat(frame(expr.CmpOpEq, unix.ETH_P_ARP), sender),
		slices.Concat(frame(expr.CmpOpEq, unix.ETH_P_IP), four),
		slices.Concat(frame(expr.CmpOpEq, unix.ETH_P_IPV6), six),
		slices.Concat(frame(expr.CmpOpEq, unix.ETH_P_IPV6), icmp(advertisement), told),
		slices.Concat(frame(expr.CmpOpEq, unix.ETH_P_IPV6), icmp(routerAdvertisement)),
		slices.Concat(frame(expr.CmpOpEq, unix.ETH_P_IPV6), icmp(redirect)),
		slices.Concat(frame(expr.CmpOpNeq, unix.ETH_P_ARP), frame(expr.CmpOpNeq, unix.ETH_P_IP),
			frame(expr.CmpOpNeq, unix.ETH_P_IPV6)),
		// A fragmented advertisement may carry its target in another fragment; hosts that follow RFC 6980 ignore
		// fragmented ones.
		slices.Concat(frame(expr.CmpOpEq, unix.ETH_P_IPV6), icmp(advertisement), inPieces()),
	}
}

// of returns the addresses of a family.
func (l Link) of(six bool) []netip.Prefix {
	var out []netip.Prefix
	for _, address := range l.Addresses {
		if address.Is6() == six {
			out = append(out, netip.PrefixFrom(address, address.BitLen()))
		}
	}
	return out
}

// linkLocal returns the address that the Pod's end gives itself according to RFC 4291, appendix A.
func (l Link) linkLocal() netip.Prefix {
	h := l.Hardware
	address := netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: h[0] ^ 2, 9: h[1], 10: h[2], 11: 0xff, 12: 0xfe,
		13: h[3], 14: h[4], 15: h[5]})
	return netip.PrefixFrom(address, address.BitLen())
}

// frame compares the protocol of a frame.
func frame(how expr.CmpOp, protocol uint16) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
		&expr.Cmp{Op: how, Register: 1, Data: binaryutil.BigEndian.PutUint16(protocol)},
	}
}

// icmp matches ICMPv6 of a type.
func icmp(kind byte) []expr.Any {
	return append([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_ICMPV6}},
	}, field(expr.PayloadBaseTransportHeader, 0, expr.CmpOpEq, []byte{kind})...)
}

// inPieces matches fragments of IPv6.
func inPieces() []expr.Any {
	return []expr.Any{
		&expr.Exthdr{DestRegister: 1, Type: unix.IPPROTO_FRAGMENT, Len: 1, Op: expr.ExthdrOpIpv6,
			Flags: unix.NFT_EXTHDR_F_PRESENT},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{1}},
	}
}

func field(header expr.PayloadBase, offset uint32, how expr.CmpOp, value []byte) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: header, Offset: offset, Len: uint32(len(value))},
		&expr.Cmp{Op: how, Register: 1, Data: value},
	}
}

// outside matches an address at that offset that is in none of the prefixes.
func outside(header expr.PayloadBase, offset uint32, prefixes []netip.Prefix) []expr.Any {
	var all []expr.Any
	for _, prefix := range prefixes {
		all = append(all, nftrule.AddressAt(header, offset, expr.CmpOpNeq, prefix)...)
	}
	return all
}
