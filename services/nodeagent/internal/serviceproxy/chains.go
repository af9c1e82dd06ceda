package serviceproxy

import (
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// The chains; those of the second group exist for both families.
const (
	chainArriving = "arriving"
	chainSending  = "sending"
	chainLeaving  = "leaving"
	chainReject   = "reject"

	chainServices      = "services"
	chainInternal      = "internal"
	chainInternalLocal = "internal-local"
	chainExternal      = "external"
	chainExternalLocal = "external-local"
	chainCluster       = "cluster"
	chainLocal         = "local"
	chainFirewall      = "firewall"
	chainCheck         = "check"
)

// The maps that lead to chains.
const (
	setClasses = "classes" // class -> chain
	setPicks   = "picks"   // how many endpoints, affinity, scope -> chain
)

var classChains = map[Class]string{
	Internal: chainInternal, InternalLocal: chainInternalLocal, External: chainExternal,
	ExternalLocal: chainExternalLocal,
}

// hooks are the chains at which packets come by. Others may filter at the usual priorities: what is rejected here is
// addressed to nobody, and what is dropped for its source must be dropped before its target is changed.
var hooks = []struct {
	name     string
	kind     nftables.ChainType
	hook     *nftables.ChainHook
	priority nftables.ChainPriority
	leads    []string
}{
	{"nat-" + chainArriving, nftables.ChainTypeNAT, nftables.ChainHookPrerouting, *nftables.ChainPriorityNATDest,
		[]string{chainServices}},
	{"nat-" + chainSending, nftables.ChainTypeNAT, nftables.ChainHookOutput, *nftables.ChainPriorityNATDest,
		[]string{chainServices}},
	{"guard-" + chainArriving, nftables.ChainTypeFilter, nftables.ChainHookPrerouting,
		*nftables.ChainPriorityNATDest - 10, []string{chainFirewall}},
	{"guard-" + chainSending, nftables.ChainTypeFilter, nftables.ChainHookOutput,
		*nftables.ChainPriorityNATDest - 10, []string{chainFirewall}},
	{"check-input", nftables.ChainTypeFilter, nftables.ChainHookInput, *nftables.ChainPriorityFilter - 10,
		[]string{chainCheck}},
	{"check-forward", nftables.ChainTypeFilter, nftables.ChainHookForward, *nftables.ChainPriorityFilter - 10,
		[]string{chainCheck}},
	{"check-output", nftables.ChainTypeFilter, nftables.ChainHookOutput, *nftables.ChainPriorityFilter - 10,
		[]string{chainCheck}},
}

// fixedChains are all chains but those of picks, with their rules.
func fixedChains(node Node, lengths []Length) map[string]rules {
	out := map[string]rules{chainReject: refusal()}
	leaving := rules{markedRule()}
	for _, r := range families {
		for name, rules := range r.classRules(node.PodRanges) {
			out[name] = rules
		}
		out[r.name(chainFirewall)] = r.firewallRules(lengths)
		out[r.name(chainCheck)] = r.rejectRules()
		// All that looks a frontend up leaves the machine's own alone.
		for _, name := range []string{chainServices, chainFirewall, chainCheck} {
			out[r.name(name)] = append(keptRules(node.Kept), out[r.name(name)]...)
		}
		leaving = append(leaving, r.hairpinRule())
	}
	out["nat-"+chainLeaving] = leaving
	for _, h := range hooks {
		var all rules
		for _, chain := range h.leads {
			for _, r := range families {
				rule := append(r.is(), jumpTo(r.name(chain)))
				if h.kind == nftables.ChainTypeFilter {
					rule = append(isNew(), rule...)
				}
				all = append(all, rule)
			}
		}
		out[h.name] = all
	}
	return out
}

// setOf describes a set as the kernel has to make it.
func (k *kernel) setOf(name string, six bool) *nftables.Set {
	addr := nftables.TypeIPAddr
	if six {
		addr = nftables.TypeIP6Addr
	}
	id, number := nftables.TypeIP6Addr, nftables.TypeMark // an ID has the size of an address
	proto, port := nftables.TypeInetProto, nftables.TypeInetService
	join := nftables.MustConcatSetType
	s := &nftables.Set{Table: k.table, Name: family(name, six)}
	value := func(v nftables.SetDatatype) { s.IsMap, s.DataType = true, v }
	switch name {
	case setPorts:
		s.KeyType = join(addr, proto, port)
		value(join(id, number))
	case setPools:
		s.KeyType = join(id, number)
		value(join(number, number, number))
	case setEndpoints:
		s.KeyType = join(id, number)
		value(join(addr, port))
	case setLive:
		s.KeyType = join(id, number, addr, port)
	case setAffinity:
		s.KeyType = join(addr, id)
		s.HasTimeout, s.Dynamic, s.Size = true, true, affinitySize
		value(join(addr, port))
	case setClusters:
		s.KeyType = addr
	case setRejected:
		s.KeyType = join(addr, proto, port)
	case setGuarded:
		s.KeyType = join(addr, proto, port)
		value(id)
	case setAllowed:
		s.KeyType = join(addr, number, id)
	case setHairpin:
		s.KeyType = join(addr, addr)
	case setClasses:
		s.KeyType = number
		value(nftables.TypeVerdict)
	case setPicks:
		s.KeyType = join(number, number, number)
		value(nftables.TypeVerdict)
	}
	return s
}

// affinitySize is how many clients of Services keep their endpoint; those beyond get one by chance each time.
const affinitySize = 1 << 18

// kept are the sets whose elements Changes names.
var kept = []string{setPorts, setPools, setEndpoints, setLive, setClusters, setRejected, setGuarded, setAllowed,
	setHairpin}

// led are the maps that lead to chains, and the kernel's own.
var led = []string{setClasses, setPicks, setAffinity}

func (k *kernel) sets() []*nftables.Set {
	var out []*nftables.Set
	for _, name := range slices.Concat(kept, led) {
		out = append(out, k.setOf(name, false), k.setOf(name, true))
	}
	return out
}

func verdict(chain string) *expr.Verdict { return &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain} }
