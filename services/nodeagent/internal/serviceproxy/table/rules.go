package table

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/keptport"
	"keelson.dev/kit/nftrule"
	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

type rules [][]expr.Any

// keptRules return early for packets to ports that the machine keeps at all of its addresses, including those that
// the Node does not list. A port kept at one address needs no rule, and node ports belong to Services.
func keptRules(kept []keptport.Port) rules {
	var out rules
	for _, k := range kept {
		if k.Address.IsValid() || k.NodePorts {
			continue
		}
		number, _ := plan.ProtocolNumber(corev1.Protocol(k.Protocol)) // flags allow only known protocols
		out = append(out, slices.Concat(nftrule.Ports(number, k.First, k.Last), nftrule.Local(),
			[]expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}))
	}
	return out
}

// ownPods returns the ranges of the family from which this node's Pods send.
func (r registers) ownPods(ranges []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(ranges), func(p netip.Prefix) bool { return p.Addr().Is6() != r.ipv6 })
}

// classRules returns the chains to which the classes lead.
func (r registers) classRules(ranges []netip.Prefix) map[string]rules {
	own := r.ownPods(ranges)
	// Answers to this node's Pods come back through this node; all other clients are masqueraded for that.
	var notOwnPods []expr.Any
	for _, p := range own {
		notOwnPods = append(notOwnPods, r.source(expr.CmpOpNeq, p)...)
	}
	internal := func(pool string) rules {
		if len(own) == 0 {
			return rules{{goTo(r.name(pool))}}
		}
		return rules{append(slices.Clone(notOwnPods), markForMasquerade()...), {goTo(r.name(pool))}}
	}
	// What the node or its Pods send may leave the node, regardless of the policy.
	var externalLocal rules
	for _, p := range own {
		externalLocal = append(externalLocal, append(r.source(expr.CmpOpEq, p), goTo(r.name(chainCluster))))
	}
	externalLocal = append(externalLocal,
		slices.Concat(sentByNode(), markForMasquerade(), []expr.Any{goTo(r.name(chainCluster))}),
		[]expr.Any{goTo(r.name(chainLocal))})
	return map[string]rules{
		r.name(chainServices):      {slices.Concat(r.lookUpPort(), []expr.Any{r.lookUp(setClasses, r.place, 0)})},
		r.name(chainInternal):      internal(chainCluster),
		r.name(chainInternalLocal): internal(chainLocal),
		r.name(chainExternal):      {append(markForMasquerade(), goTo(r.name(chainCluster)))},
		r.name(chainExternalLocal): externalLocal,
		r.name(chainCluster):       {r.choosePick(scopeCluster)},
		r.name(chainLocal):         {r.choosePick(scopeLocal)},
	}
}

// choosePick jumps to the chain for the pool's size.
func (r registers) choosePick(scope uint32) []expr.Any {
	return slices.Concat(r.lookUpPort(), []expr.Any{r.scope(scope), r.lookUp(setPools, r.id, r.addr),
		r.lookUp(setPicks, r.addr, 0)})
}

// pickRules choose an endpoint at random, or the one that the client had before. They forget that one once it is no
// endpoint any more. Clients that no longer fit into the map get a random endpoint.
func (r registers) pickRules(p Pick) rules {
	if p.Count == 0 {
		return rules{drop()}
	}
	endpoint := func(then ...expr.Any) []expr.Any {
		return slices.Concat(r.lookUpPort(), []expr.Any{
			&expr.Numgen{Register: r.place, Modulus: p.Count, Type: unix.NFT_NG_RANDOM, Offset: p.Scope},
			r.lookUp(setEndpoints, r.id, r.addr),
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
	known := slices.Concat(r.lookUpPort(), []expr.Any{client, r.lookUp(setAffinity, r.client, r.addr)})
	return rules{
		slices.Concat(known, []expr.Any{r.scope(p.Scope), r.in(setLive, r.id), update, r.dnat()}),
		append(known, forget), endpoint(client, update), endpoint(),
	}
}

// opDelete is the kernel's NFT_DYNSET_OP_DELETE.
const opDelete = 2

func (p Pick) chain() string {
	return fmt.Sprintf("%s-%d-%d-%d", family("pick", p.IPv6), p.Scope>>31, p.Count, int(p.Affinity.Seconds()))
}

func (p Pick) key() []byte {
	return []byte(word(p.Count) + word(uint32(p.Affinity.Seconds())) + word(p.Scope))
}

// firewallRules let only allowed sources reach load balancers' addresses.
func (r registers) firewallRules(lengths []PrefixLength) rules {
	var out rules
	// The network, its length and the guard are in adjacent registers.
	network, length, guarded := uint32(firstRegister), firstRegister+r.words, firstRegister+r.words+1
	guard := append(r.destination(), r.lookUp(setGuarded, firstRegister, guarded))
	for _, l := range lengths {
		if l.IPv6 != r.ipv6 {
			continue
		}
		out = append(out, slices.Concat(guard, []expr.Any{
			r.load(nftrule.Source, network), r.masked(network, l.Bits),
			&expr.Immediate{Register: length, Data: native(uint32(l.Bits))},
			r.in(setAllowed, network), &expr.Verdict{Kind: expr.VerdictReturn},
		}))
	}
	return append(out, append(slices.Clone(guard), &expr.Verdict{Kind: expr.VerdictDrop}))
}

// checkRules reject destinations without endpoints, and ports of Services' addresses that no Service has.
func (r registers) checkRules() rules {
	return rules{
		{r.load(nftrule.Destination, firstRegister), r.in(setClusters, firstRegister), goTo(chainReject)},
		append(r.destination(), r.in(setRejected, firstRegister), goTo(chainReject)),
	}
}

// hairpinRule masquerades what a Pod sends to itself.
func (r registers) hairpinRule() []expr.Any {
	return slices.Concat(r.ofFamily(), []expr.Any{
		r.load(nftrule.Source, firstRegister), r.load(nftrule.Destination, firstRegister+r.words),
		r.in(setHairpin, firstRegister),
		&expr.Masq{FullyRandom: true},
	})
}

// masqueradeRule masquerades marked packets and clears the mark: the packet may pass again inside another one.
func masqueradeRule() []expr.Any {
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

// rejectRules answer at once: a TCP reset is not counted against the kernel's limit of ICMP messages.
func rejectRules() rules {
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
