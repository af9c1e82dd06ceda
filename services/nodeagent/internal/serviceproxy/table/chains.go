package table

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
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

var classChains = map[plan.TrafficClass]string{
	plan.InternalCluster: chainInternal, plan.InternalLocal: chainInternalLocal,
	plan.ExternalCluster: chainExternal, plan.ExternalLocal: chainExternalLocal,
}

// hooks are the base chains. Other programs may filter at the usual priorities: the packets rejected here have no
// addressee, and those dropped for their source must be dropped before their target is changed.
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

// fixedChains returns all chains but those of picks, with their rules.
func fixedChains(node plan.Node, lengths []PrefixLength) map[string]rules {
	out := map[string]rules{chainReject: rejectRules()}
	leaving := rules{masqueradeRule()}
	for _, r := range families {
		for name, rules := range r.classRules(node.PodRanges) {
			out[name] = rules
		}
		out[r.name(chainFirewall)] = r.firewallRules(lengths)
		out[r.name(chainCheck)] = r.checkRules()
		// The chains that look up a frontend leave the machine's own ports alone.
		for _, name := range []string{chainServices, chainFirewall, chainCheck} {
			out[r.name(name)] = append(keptRules(node.KeptPorts), out[r.name(name)]...)
		}
		leaving = append(leaving, r.hairpinRule())
	}
	out["nat-"+chainLeaving] = leaving
	for _, h := range hooks {
		var all rules
		for _, chain := range h.leads {
			for _, r := range families {
				rule := append(r.ofFamily(), jumpTo(r.name(chain)))
				if h.kind == nftables.ChainTypeFilter {
					rule = append(newConnection(), rule...)
				}
				all = append(all, rule)
			}
		}
		out[h.name] = all
	}
	return out
}

// chain describes a chain as the kernel has to create it.
func (t Table) chain(name string) *nftables.Chain {
	c := &nftables.Chain{Table: t.ref(), Name: name}
	if name == "nat-"+chainLeaving {
		c.Type, c.Hooknum, c.Priority = nftables.ChainTypeNAT, nftables.ChainHookPostrouting,
			nftables.ChainPriorityNATSource
	}
	for _, h := range hooks {
		if h.name == name {
			c.Type, c.Hooknum, c.Priority = h.kind, h.hook, &h.priority
		}
	}
	return c
}

// named refers to an existing chain.
func (t Table) named(name string) *nftables.Chain { return &nftables.Chain{Table: t.ref(), Name: name} }

func verdict(chain string) *expr.Verdict { return &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain} }
