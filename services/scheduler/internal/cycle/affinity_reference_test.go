package cycle_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selects reports whether a term of the carrier selects the other Pod.
func (c *cluster) selects(t *corev1.PodAffinityTerm, carrier, other *corev1.Pod) bool {
	in := slices.Contains(t.Namespaces, other.Namespace)
	if t.NamespaceSelector != nil {
		s, _ := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
		in = in || s.Matches(labels.Set(c.namespaces[other.Namespace]))
	} else if len(t.Namespaces) == 0 {
		in = carrier.Namespace == other.Namespace
	}
	s, _ := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if !in || !s.Matches(labels.Set(other.Labels)) {
		return false
	}
	for _, key := range t.MatchLabelKeys {
		if want, ok := carrier.Labels[key]; ok && (other.Labels[key] != want) {
			return false
		}
	}
	for _, key := range t.MismatchLabelKeys {
		want, ok := carrier.Labels[key]
		if got, has := other.Labels[key]; ok && has && got == want {
			return false
		}
	}
	return true
}

// sociability is the terms of a Pod about others.
func sociability(p *corev1.Pod) (with corev1.PodAffinity, against corev1.PodAntiAffinity) {
	if a := p.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			with = *a.PodAffinity
		}
		if a.PodAntiAffinity != nil {
			against = *a.PodAntiAffinity
		}
	}
	return with, against
}

// there reports whether such a Pod is in the node's domain; any domain where the node is nil.
func (c *cluster) there(n *corev1.Node, key string, of func(*corev1.Pod) bool) bool {
	for _, at := range c.Nodes {
		value, ok := at.Labels[key]
		if !ok || n != nil && n.Labels[key] != value {
			continue
		}
		if slices.ContainsFunc(c.on(at), of) {
			return true
		}
	}
	return false
}

// unsociable says why the terms of the Pod, and of those that are there, keep it from the node.
func (c *cluster) unsociable(p *corev1.Pod, n *corev1.Node) string {
	with, against := sociability(p)
	required := with.RequiredDuringSchedulingIgnoredDuringExecution
	all := func(other *corev1.Pod) bool {
		for i := range required {
			if !c.selects(&required[i], p, other) {
				return false
			}
		}
		return true
	}
	missing, none := false, true
	for i := range required {
		if _, ok := n.Labels[required[i].TopologyKey]; !ok {
			return "node(s) didn't match pod affinity rules"
		}
		missing = missing || !c.there(n, required[i].TopologyKey, all)
		none = none && !c.there(nil, required[i].TopologyKey, all)
	}
	if missing && (!none || !all(p)) {
		return "node(s) didn't match pod affinity rules"
	}
	for i := range against.RequiredDuringSchedulingIgnoredDuringExecution {
		t := &against.RequiredDuringSchedulingIgnoredDuringExecution[i]
		if _, ok := n.Labels[t.TopologyKey]; ok &&
			c.there(n, t.TopologyKey, func(other *corev1.Pod) bool { return c.selects(t, p, other) }) {
			return "node(s) didn't match pod anti-affinity rules"
		}
	}
	for key := range n.Labels {
		if c.there(n, key, func(other *corev1.Pod) bool {
			_, theirs := sociability(other)
			for i := range theirs.RequiredDuringSchedulingIgnoredDuringExecution {
				t := &theirs.RequiredDuringSchedulingIgnoredDuringExecution[i]
				if t.TopologyKey == key && c.selects(t, other, p) {
					return true
				}
			}
			return false
		}) {
			return "node(s) didn't satisfy existing pods anti-affinity rules"
		}
	}
	return ""
}

// attraction adds up what the terms of the Pod and of those that are there say for the node.
func (c *cluster) attraction(p *corev1.Pod, n *corev1.Node) (sum int64) {
	with, against := sociability(p)
	for _, at := range c.Nodes {
		for _, other := range c.on(at) {
			add := func(t *corev1.PodAffinityTerm, carrier, selected *corev1.Pod, weight int32) {
				there, ok := at.Labels[t.TopologyKey]
				here, has := n.Labels[t.TopologyKey]
				if ok && has && here == there && c.selects(t, carrier, selected) {
					sum += int64(weight)
				}
			}
			both := func(terms []corev1.WeightedPodAffinityTerm, carrier, selected *corev1.Pod, sign int32) {
				for i := range terms {
					add(&terms[i].PodAffinityTerm, carrier, selected, sign*terms[i].Weight)
				}
			}
			theirs, theirsAgainst := sociability(other)
			both(with.PreferredDuringSchedulingIgnoredDuringExecution, p, other, 1)
			both(against.PreferredDuringSchedulingIgnoredDuringExecution, p, other, -1)
			both(theirs.PreferredDuringSchedulingIgnoredDuringExecution, other, p, 1)
			both(theirsAgainst.PreferredDuringSchedulingIgnoredDuringExecution, other, p, -1)
			for i := range theirs.RequiredDuringSchedulingIgnoredDuringExecution {
				add(&theirs.RequiredDuringSchedulingIgnoredDuringExecution[i], other, p, int32(1+c.attracts))
			}
		}
	}
	return sum
}

// addAttraction adds the weighted attraction, from 0 for the least to 100 for the greatest.
func (c *cluster) addAttraction(p *corev1.Pod, scores map[string]int64) {
	with, against := sociability(p)
	if c.deaf && len(with.PreferredDuringSchedulingIgnoredDuringExecution)+
		len(against.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return
	}
	raw := map[string]int64{}
	for name := range scores {
		raw[name] = c.attraction(p, c.Nodes[name])
	}
	for name := range scores {
		least, greatest := raw[name], raw[name]
		for _, other := range raw {
			least, greatest = min(least, other), max(greatest, other)
		}
		if greatest > least {
			scores[name] += c.weigh("InterPodAffinity", 2) * (100 * (raw[name] - least) / (greatest - least))
		}
	}
}
