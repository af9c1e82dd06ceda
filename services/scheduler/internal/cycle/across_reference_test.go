package cycle_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// bestAcross is the preemption across nodes: those may go too that a rule about the Pod counts in a domain of the node.
func (c *rivals) bestAcross(p *corev1.Pod) (best *offer) {
	for _, n := range c.Nodes {
		first := c.refuses(p, n, nil)
		if len(first) == 0 || !c.curable(first, p, n) {
			continue
		}
		var lower []*corev1.Pod
		found := false
		for _, at := range c.Nodes {
			for _, other := range c.on(at) {
				beside := at.Name != n.Name && c.countsBeside(p, n, other, at)
				if rank(other) < rank(p) && (at.Name == n.Name || beside) {
					lower, found = append(lower, other), found || beside
				}
			}
		}
		if !found {
			continue
		}
		o := offer{node: n.Name}
		c.choose(p, n, c.parties(p, lower), &o, func(gone []*corev1.Pod) []string { return c.refuses(p, n, gone) })
		if len(o.reasons) == 0 && (best == nil || before(o, *best)) {
			best = &o
		}
	}
	return best
}

// countsBeside reports whether the other Pod, on another node, counts in a domain of the node that the Pod looks at.
func (c *rivals) countsBeside(p *corev1.Pod, n *corev1.Node, other *corev1.Pod, at *corev1.Node) bool {
	shared := func(key string) bool {
		value, ok := n.Labels[key]
		return ok && at.Labels[key] == value
	}
	hard := c.spreadings(p, corev1.DoNotSchedule)
	for i := range hard {
		s := &hard[i]
		if shared(s.TopologyKey) && s.eligible(p, at, hard) && other.Namespace == p.Namespace &&
			other.DeletionTimestamp == nil && s.selector.Matches(labels.Set(other.Labels)) &&
			c.filters("PodTopologySpread") {
			return true
		}
	}
	if !c.filters("InterPodAffinity") {
		return false
	}
	with, against := sociability(p)
	all := true
	for i := range with.RequiredDuringSchedulingIgnoredDuringExecution {
		all = all && c.selects(&with.RequiredDuringSchedulingIgnoredDuringExecution[i], p, other)
	}
	for _, t := range with.RequiredDuringSchedulingIgnoredDuringExecution {
		if all && shared(t.TopologyKey) {
			return true
		}
	}
	for i := range against.RequiredDuringSchedulingIgnoredDuringExecution {
		t := &against.RequiredDuringSchedulingIgnoredDuringExecution[i]
		if shared(t.TopologyKey) && c.selects(t, p, other) {
			return true
		}
	}
	_, theirs := sociability(other)
	for i := range theirs.RequiredDuringSchedulingIgnoredDuringExecution {
		t := &theirs.RequiredDuringSchedulingIgnoredDuringExecution[i]
		if shared(t.TopologyKey) && c.selects(t, other, p) {
			return true
		}
	}
	return false
}
