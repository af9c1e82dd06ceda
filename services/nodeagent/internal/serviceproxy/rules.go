package serviceproxy

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/keptport"
	"keelson.dev/kit/nftrule"
)

// masqueradeMark is the bit of a packet's mark by which the rules tell each other that it gets the node's address. It
// is the bit that Kubernetes has always used for it, so that others leave it alone.
const masqueradeMark = 1 << 14

// registers says where a rule keeps what it looks up. They lie so that each key of a set is one piece:
// client, ID, place, address, port.
type registers struct {
	six                           bool
	words                         uint32 // of an address
	client, id, place, addr, port uint32
	nfproto                       byte
}

const firstRegister = unix.NFT_REG32_00

var families = []registers{layout(false), layout(true)}

func layout(six bool) registers {
	r := registers{six: six, words: 1, nfproto: unix.NFPROTO_IPV4}
	if six {
		r.words, r.nfproto = 4, unix.NFPROTO_IPV6
	}
	r.client = firstRegister
	r.id = r.client + r.words
	r.place = r.id + 4
	r.addr = r.place + 1
	r.port = r.addr + r.words
	return r
}

func (r registers) name(name string) string { return family(name, r.six) }

// is lets only packets of the family on.
func (r registers) is() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: firstRegister},
		&expr.Cmp{Op: expr.CmpOpEq, Register: firstRegister, Data: []byte{r.nfproto}},
	}
}

func (r registers) load(field nftrule.Field, register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: field.Offset(r.six),
		Len: 4 * r.words}
}

// key loads where the packet goes, as the keys of sets have it, into the first registers.
func (r registers) key() []expr.Any {
	const portOffset, portLength = 2, 2
	return []expr.Any{
		r.load(nftrule.Destination, firstRegister),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: firstRegister + r.words},
		&expr.Payload{DestRegister: firstRegister + r.words + 1, Base: expr.PayloadBaseTransportHeader,
			Offset: portOffset, Len: portLength},
	}
}

// within lets on what is in a set.
func (r registers) within(set string, register uint32) expr.Any {
	return &expr.Lookup{SourceRegister: register, SetName: r.name(set)}
}

// get looks a value up in a map.
func (r registers) get(set string, key, value uint32) expr.Any {
	return &expr.Lookup{SourceRegister: key, DestRegister: value, IsDestRegSet: true, SetName: r.name(set)}
}

// port lets on what goes to a port, with its ID loaded; the class stands at the place.
func (r registers) ofPort() []expr.Any { return append(r.key(), r.get(setPorts, firstRegister, r.id)) }

func (r registers) scope(scope uint32) expr.Any {
	return &expr.Immediate{Register: r.place, Data: []byte(word(scope))}
}

func (r registers) dnat() expr.Any {
	return &expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(r.nfproto), RegAddrMin: r.addr, RegProtoMin: r.port}
}

func jumpTo(chain string) expr.Any { return &expr.Verdict{Kind: expr.VerdictJump, Chain: chain} }
func goTo(chain string) expr.Any   { return &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain} }

// mark has a packet masqueraded in the end.
func mark() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: 4,
			Mask: native(^uint32(masqueradeMark)), Xor: native(masqueradeMark)},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister, SourceRegister: true},
	}
}

func native(n uint32) []byte { return binaryutil.NativeEndian.PutUint32(n) }

// from compares the source address with a range.
func (r registers) from(how expr.CmpOp, prefix netip.Prefix) []expr.Any {
	return []expr.Any{
		r.load(nftrule.Source, firstRegister),
		r.masked(firstRegister, prefix.Bits()),
		&expr.Cmp{Op: how, Register: firstRegister, Data: prefix.Masked().Addr().AsSlice()},
	}
}

func (r registers) masked(register uint32, bits int) expr.Any {
	return &expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4 * r.words,
		Mask: net.CIDRMask(bits, int(32*r.words)), Xor: make([]byte, 4*r.words)}
}

// keptRules let what goes to the ports that the machine keeps at all of its addresses pass by, whichever of them it is:
// the Node does not list them all. What is kept at one address is known by it, and node ports are Services'.
func keptRules(kept []keptport.Port) rules {
	var out rules
	for _, k := range kept {
		if k.Address.IsValid() || k.NodePorts {
			continue
		}
		number := protocolNumbers[corev1.Protocol(k.Protocol)]
		out = append(out, slices.Concat(nftrule.Ports(number, k.First, k.Last), nftrule.Local(),
			[]expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}))
	}
	return out
}

// fromHere lets on what the node itself sends.
func fromHere() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: firstRegister, FlagSADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: firstRegister, Data: native(unix.RTN_LOCAL)},
	}
}

// isNew lets on packets that begin a connection.
func isNew() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: firstRegister},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: 4,
			Mask: native(expr.CtStateBitNEW), Xor: native(0)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: firstRegister, Data: native(0)},
	}
}

type rules [][]expr.Any

// ownPods are the ranges of the family from which this node's Pods send.
func (r registers) ownPods(ranges []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(ranges), func(p netip.Prefix) bool { return p.Addr().Is6() != r.six })
}

// classRules are the chains to which the classes lead.
func (r registers) classRules(ranges []netip.Prefix) map[string]rules {
	own := r.ownPods(ranges)
	// What this node's Pods send to a Service comes back through this node; all else needs the node's address for it.
	var strangers []expr.Any
	for _, p := range own {
		strangers = append(strangers, r.from(expr.CmpOpNeq, p)...)
	}
	internal := func(pool string) rules {
		if len(own) == 0 {
			return rules{{goTo(r.name(pool))}}
		}
		return rules{append(slices.Clone(strangers), mark()...), {goTo(r.name(pool))}}
	}
	var local rules
	for _, p := range own {
		local = append(local, append(r.from(expr.CmpOpEq, p), goTo(r.name(chainCluster))))
	}
	local = append(local, slices.Concat(fromHere(), mark(), []expr.Any{goTo(r.name(chainCluster))}),
		[]expr.Any{goTo(r.name(chainLocal))})
	return map[string]rules{
		r.name(chainServices):      {slices.Concat(r.ofPort(), []expr.Any{r.get(setClasses, r.place, 0)})},
		r.name(chainInternal):      internal(chainCluster),
		r.name(chainInternalLocal): internal(chainLocal),
		r.name(chainExternal):      {append(mark(), goTo(r.name(chainCluster)))},
		r.name(chainExternalLocal): local,
		r.name(chainCluster):       {r.choose(scopeCluster)},
		r.name(chainLocal):         {r.choose(scopeLocal)},
	}
}

// choose goes to the chain of the pool's size.
func (r registers) choose(scope uint32) []expr.Any {
	return slices.Concat(r.ofPort(), []expr.Any{r.scope(scope), r.get(setPools, r.id, r.addr),
		r.get(setPicks, r.addr, 0)})
}

// pickRules choose an endpoint by chance, or the client's own of before. That is forgotten once it is no endpoint any
// more. Where no more clients fit into the map, they get an endpoint all the same.
func (r registers) pickRules(p Pick) rules {
	endpoint := func(then ...expr.Any) []expr.Any {
		return slices.Concat(r.ofPort(), []expr.Any{
			&expr.Numgen{Register: r.place, Modulus: p.Count, Type: unix.NFT_NG_RANDOM, Offset: p.Scope},
			r.get(setEndpoints, r.id, r.addr),
		}, then, []expr.Any{r.dnat()})
	}
	if p.Affinity == 0 {
		return rules{endpoint()}
	}
	client := r.load(nftrule.Source, r.client)
	keep := func(operation uint32, timeout time.Duration) *expr.Dynset {
		return &expr.Dynset{SrcRegKey: r.client, SrcRegData: r.addr, SetName: r.name(setAffinity), Operation: operation,
			Timeout: timeout}
	}
	update, forget := keep(unix.NFT_DYNSET_OP_UPDATE, p.Affinity), keep(opDelete, 0)
	known := slices.Concat(r.ofPort(), []expr.Any{client, r.get(setAffinity, r.client, r.addr)})
	return rules{
		slices.Concat(known, []expr.Any{r.scope(p.Scope), r.within(setLive, r.id), update, r.dnat()}),
		append(known, forget), endpoint(client, update), endpoint(),
	}
}

// opDelete is NFT_DYNSET_OP_DELETE of the kernel.
const opDelete = 2

func (p Pick) chain() string {
	return fmt.Sprintf("%s-%d-%d-%d", family("pick", p.Six), p.Scope>>31, p.Count, int(p.Affinity.Seconds()))
}

func (p Pick) key() []byte {
	return []byte(word(p.Count) + word(uint32(p.Affinity.Seconds())) + word(p.Scope))
}

// firewallRules let only allowed sources to load balancers' addresses.
func (r registers) firewallRules(lengths []Length) rules {
	var out rules
	// The network, its length and the guard lie side by side.
	network, length, guarded := uint32(firstRegister), firstRegister+r.words, firstRegister+r.words+1
	guard := append(r.key(), r.get(setGuarded, firstRegister, guarded))
	for _, l := range lengths {
		if l.Six != r.six {
			continue
		}
		out = append(out, slices.Concat(guard, []expr.Any{
			r.load(nftrule.Source, network), r.masked(network, l.Bits),
			&expr.Immediate{Register: length, Data: native(uint32(l.Bits))},
			r.within(setAllowed, network), &expr.Verdict{Kind: expr.VerdictReturn},
		}))
	}
	return append(out, append(slices.Clone(guard), &expr.Verdict{Kind: expr.VerdictDrop}))
}

// rejectRules reject what no endpoint is there for, and ports of Services' addresses that no Service has.
func (r registers) rejectRules() rules {
	return rules{
		{r.load(nftrule.Destination, firstRegister), r.within(setClusters, firstRegister), goTo(chainReject)},
		append(r.key(), r.within(setRejected, firstRegister), goTo(chainReject)),
	}
}

// hairpinRule gives the node's address to what a Pod sends to itself.
func (r registers) hairpinRule() []expr.Any {
	return slices.Concat(r.is(), []expr.Any{
		r.load(nftrule.Source, firstRegister), r.load(nftrule.Destination, firstRegister+r.words),
		r.within(setHairpin, firstRegister),
		&expr.Masq{FullyRandom: true},
	})
}

// markedRule masquerades what is marked, and takes the mark away: the packet may come by again inside of another.
func markedRule() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister + 1, Len: 4,
			Mask: native(masqueradeMark), Xor: native(0)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: firstRegister + 1, Data: native(0)},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: 4,
			Mask: native(^uint32(masqueradeMark)), Xor: native(0)},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister, SourceRegister: true},
		&expr.Masq{FullyRandom: true},
	}
}

// refusal answers at once: a TCP reset is not counted against the kernel's limit of ICMP messages.
func refusal() rules {
	return rules{
		{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: firstRegister},
			&expr.Cmp{Op: expr.CmpOpEq, Register: firstRegister, Data: []byte{unix.IPPROTO_TCP}},
			&expr.Reject{Type: unix.NFT_REJECT_TCP_RST},
		},
		{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}},
	}
}

func drop() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}} }
