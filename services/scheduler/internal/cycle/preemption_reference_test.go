package cycle_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
)

// rivals is the slow, obvious preemption: for each Pod it tries every node with every set of Pods that the rules ask
// for, on copies of the cluster.
type rivals struct {
	*cluster
	nominees map[types.UID]*corev1.Pod // with spec.nodeName as they would be there
	across   bool                      // whether Pods on other nodes may be victims
	budgets  map[string]*policyv1.PodDisruptionBudget
	groups   map[string]*schedulingv1beta1.PodGroup // of namespace default

	disrupted []*corev1.Pod     // who leaves already, unknown to the budgets
	ties      map[string]uint32 // what decides between nodes of equal score
}

// offer is what a node would cost, and why it is none.
type offer struct {
	node       string
	reasons    []string
	victims    []*corev1.Pod
	violations int
}

// without returns a copy of the cluster that lacks some Pods and has the nominees of a node that the Pod must respect.
func (c *rivals) without(p *corev1.Pod, node string, lacks []*corev1.Pod) *cluster {
	pods := maps.Clone(c.Pods)
	for _, other := range c.nominees {
		if other.Spec.NodeName == node && other.UID != p.UID && rank(other) >= rank(p) {
			pods[other.UID] = other
		}
	}
	for _, other := range lacks {
		delete(pods, other.UID)
	}
	return &cluster{Nodes: c.Nodes, Pods: pods, storage: c.storage, nominated: c.nominees, sums: c.sums,
		otherwise: c.otherwise}
}

// refuses returns why the node cannot take the Pod without those that it lacks: with the nominees that the Pod must
// respect, or if these do not come. Where it cannot in both cases, the words are those of the rule that is asked first:
// the scheduler asks each rule about both.
func (c *rivals) refuses(p *corev1.Pod, n *corev1.Node, lacks []*corev1.Pod) []string {
	beside, alone := c.without(p, n.Name, lacks).refusals(p, n), c.without(p, "", lacks).refusals(p, n)
	if len(beside) == 0 || len(alone) > 0 && asked(alone[0]) < asked(beside[0]) {
		return alone
	}
	return beside
}

// asked is the place of a reason's rule among those by which a node may be worse without a nominee; 0 for others.
func asked(reason string) int {
	switch {
	case reason == exceeds:
		return 1
	case strings.Contains(reason, "topology spread"):
		return 2
	case strings.Contains(reason, "affinity rules"):
		return 3
	}
	return 0
}

func rank(p *corev1.Pod) int64 {
	if p.Spec.Priority == nil {
		return 0
	}
	return int64(*p.Spec.Priority)
}

func startOf(p *corev1.Pod) int64 {
	if p.Status.StartTime == nil {
		return 1 << 62
	}
	return p.Status.StartTime.UnixNano()
}

func important(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(startOf(a), startOf(b)), cmp.Compare(a.UID, b.UID))
}

// try returns what the node would cost; neither victims nor reasons when the Pod fits there.
func (c *rivals) try(p *corev1.Pod, n *corev1.Node) offer {
	out := offer{node: n.Name}
	first := c.refuses(p, n, nil)
	if len(first) == 0 {
		return out
	}
	if !c.curable(first, p, n) {
		out.reasons = []string{"Preemption is not helpful for scheduling"}
		return out
	}
	var lower []*corev1.Pod
	for _, other := range c.on(n) {
		if rank(other) < rank(p) {
			lower = append(lower, other)
		}
	}
	parties := c.parties(p, lower)
	if len(parties) == 0 {
		out.reasons = []string{"No preemption victims found for incoming pod"}
		return out
	}
	c.choose(p, n, parties, &out, func(gone []*corev1.Pod) []string {
		here := slices.DeleteFunc(slices.Clone(gone), func(o *corev1.Pod) bool { return o.Spec.NodeName != n.Name })
		if reasons := c.refuses(p, n, here); len(reasons) > 0 {
			return reasons
		}
		return c.refuses(p, n, gone)
	})
	return out
}

// choose finds out which of these parties must go so that the Pod fits on the node: each for which it does not fit
// beside those that stay.
func (c *rivals) choose(p *corev1.Pod, n *corev1.Node, parties [][]*corev1.Pod, out *offer,
	refuses func(gone []*corev1.Pod) []string) {
	gone := slices.Concat(parties...)
	if out.reasons = refuses(gone); len(out.reasons) > 0 {
		return
	}
	parties = slices.DeleteFunc(parties, func(party []*corev1.Pod) bool { return party[0].DeletionTimestamp != nil })
	parties, overdrawn := c.inOrder(parties)
	for again := true; again; {
		before := len(parties)
		parties = slices.DeleteFunc(parties, func(party []*corev1.Pod) bool {
			lacks := except(gone, party)
			stays := len(refuses(lacks)) == 0
			if stays {
				gone = lacks
			}
			return stays
		})
		again = len(parties) < before
	}
	for _, party := range parties {
		for _, other := range party {
			if out.victims = append(out.victims, other); overdrawn[other] {
				out.violations++
			}
		}
	}
	slices.SortFunc(out.victims, important)
}

func (c *rivals) curable(reasons []string, p *corev1.Pod, n *corev1.Node) bool {
	for name, want := range c.requests(p, asAsked) {
		text := "Insufficient " + string(name)
		if have := n.Status.Allocatable[name]; slices.Contains(reasons, text) && have.Cmp(want) < 0 {
			return false
		}
	}
	if slices.Contains(reasons, taken) {
		return !slices.ContainsFunc(c.usersOf(p), func(node string) bool { return node != n.Name })
	}
	return !slices.ContainsFunc(reasons, func(r string) bool {
		return !strings.HasPrefix(r, "Insufficient ") && r != "Too many pods" && r != exceeds &&
			!strings.Contains(r, "free ports") &&
			!strings.Contains(r, "anti-affinity rules") && r != "node(s) didn't match pod topology spread constraints"
	})
}

// before reports whether the field takes the first offer rather than the second.
func before(a, b offer) bool {
	highest := func(o offer) int64 {
		if len(o.victims) == 0 {
			return -1 << 62
		}
		return rank(o.victims[0])
	}
	sum := func(o offer) (n int64) {
		for _, v := range o.victims {
			n += rank(v) + 1<<31
		}
		return n
	}
	started := func(o offer) int64 {
		earliest := int64(1<<63 - 1)
		for _, v := range o.victims {
			if rank(v) == highest(o) {
				earliest = min(earliest, startOf(v))
			}
		}
		return earliest
	}
	return cmp.Or(cmp.Compare(a.violations, b.violations), cmp.Compare(highest(a), highest(b)),
		cmp.Compare(sum(a), sum(b)), cmp.Compare(len(a.victims), len(b.victims)),
		cmp.Compare(started(b), started(a)), cmp.Compare(a.node, b.node)) < 0
}

// expect returns what becomes of a Pod that fits nowhere: its node and victims, or what it says.
func (c *rivals) expect(p *corev1.Pod) string {
	var best *offer
	counts := map[string]int{}
	for _, n := range c.Nodes {
		o := c.try(p, n)
		for _, r := range o.reasons {
			counts[r]++
		}
		if len(o.reasons) == 0 && (best == nil || before(o, *best)) {
			best = &o
		}
	}
	if best == nil && c.across {
		best = c.bestAcross(p)
	}
	if best != nil {
		return fmt.Sprint(best.node, names(best.victims), best.violations)
	}
	var parts []string
	for text, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, text))
	}
	slices.Sort(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", len(c.Nodes), strings.Join(parts, ", "))
}
