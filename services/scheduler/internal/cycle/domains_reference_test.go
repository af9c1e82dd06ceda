package cycle_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/rulestest"
)

// domainCluster judges by rulestest.DomainRules as cluster does by the others: it looks at every node and every Pod for
// each question.
type domainCluster struct {
	Nodes map[string]*corev1.Node
	Pods  map[types.UID]*corev1.Pod // with a node
	// Selects is whether spec.nodeSelector keeps Pods from nodes.
	Selects bool
}

const (
	full  = "Too many pods"
	other = "node(s) didn't match Pod's node affinity/selector"
)

// Judge judges every node.
func (c *domainCluster) Judge(p *corev1.Pod) expectation {
	v := expectation{Scores: map[string]int64{}, Refusals: map[string]int{}}
	raw := map[string]int64{}
	greatest := int64(0)
	for name, n := range c.Nodes {
		if reason := c.refusal(p, n); reason != "" {
			v.Refusals[reason]++
			continue
		}
		for i := range p.Spec.TopologySpreadConstraints {
			if s := &p.Spec.TopologySpreadConstraints[i]; s.WhenUnsatisfiable == corev1.ScheduleAnyway {
				counts := c.spread(p, s)
				raw[name] += int64(counts[n.Labels[s.TopologyKey]])
			}
		}
		v.Scores[name] = 0
		greatest = max(greatest, raw[name])
	}
	soft := slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(s corev1.TopologySpreadConstraint) bool {
		return s.WhenUnsatisfiable == corev1.ScheduleAnyway
	})
	for name := range v.Scores {
		if !soft {
			continue
		}
		v.Scores[name] = 2 * 100
		if greatest > 0 {
			v.Scores[name] = 2 * (100 - 100*raw[name]/greatest)
		}
	}
	return v
}

func (c *domainCluster) refusal(p *corev1.Pod, n *corev1.Node) string {
	if c.Selects && !labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return other
	}
	on := 0
	for _, other := range c.Pods {
		if other.Spec.NodeName == n.Name {
			on++
		}
	}
	room := n.Status.Allocatable[corev1.ResourcePods]
	if int64(on) >= room.Value() {
		return full
	}
	for i := range p.Spec.TopologySpreadConstraints {
		if reason := c.uneven(p, n, &p.Spec.TopologySpreadConstraints[i]); reason != "" {
			return reason
		}
	}
	for _, t := range antiAffinity(p) {
		if c.inDomain(n, t.TopologyKey, func(other *corev1.Pod) bool { return selects(t, p, other) }) {
			return rulestest.NotApart
		}
	}
	if c.inAnyDomain(n, func(other *corev1.Pod, key string) bool {
		return slices.ContainsFunc(antiAffinity(other), func(t corev1.PodAffinityTerm) bool {
			return t.TopologyKey == key && selects(t, other, p)
		})
	}) {
		return rulestest.KeptApart
	}
	return c.alone(p, n)
}

// uneven says why one more Pod on the node breaks a constraint.
func (c *domainCluster) uneven(p *corev1.Pod, n *corev1.Node, s *corev1.TopologySpreadConstraint) string {
	if s.WhenUnsatisfiable != corev1.DoNotSchedule {
		return ""
	}
	value, ok := n.Labels[s.TopologyKey]
	if !ok {
		return rulestest.NoDomain
	}
	counts := c.spread(p, s)
	least := 0
	for value := range counts {
		least = counts[value]
		break
	}
	for _, count := range counts {
		least = min(least, count)
	}
	own := 0
	if matches, _ := metav1.LabelSelectorAsSelector(s.LabelSelector); matches.Matches(labels.Set(p.Labels)) {
		own = 1
	}
	if counts[value]+own-least > int(s.MaxSkew) {
		return rulestest.Uneven
	}
	return ""
}

// spread counts the Pods of a constraint by domain, on the nodes that the Pod selects.
func (c *domainCluster) spread(p *corev1.Pod, s *corev1.TopologySpreadConstraint) map[string]int {
	matches, _ := metav1.LabelSelectorAsSelector(s.LabelSelector)
	counts := map[string]int{}
	for _, n := range c.Nodes {
		value, ok := n.Labels[s.TopologyKey]
		if !ok || !labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
			continue
		}
		counts[value] += 0
		for _, other := range c.Pods {
			if other.Spec.NodeName == n.Name && other.Namespace == p.Namespace && other.DeletionTimestamp == nil &&
				matches.Matches(labels.Set(other.Labels)) {
				counts[value]++
			}
		}
	}
	return counts
}

// alone says why the Pod does not find the Pods that it goes with.
func (c *domainCluster) alone(p *corev1.Pod, n *corev1.Node) string {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
		return ""
	}
	for _, t := range p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if _, ok := n.Labels[t.TopologyKey]; !ok {
			return rulestest.Alone
		}
		of := func(other *corev1.Pod) bool { return selects(t, p, other) }
		anywhere := false
		for _, other := range c.Nodes {
			anywhere = anywhere || c.inDomain(other, t.TopologyKey, of)
		}
		if !c.inDomain(n, t.TopologyKey, of) && (anywhere || !selects(t, p, p)) {
			return rulestest.Alone
		}
	}
	return ""
}

func antiAffinity(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// selects reports whether a term that one Pod carries selects the other.
func selects(t corev1.PodAffinityTerm, carrier, other *corev1.Pod) bool {
	matches, _ := metav1.LabelSelectorAsSelector(t.LabelSelector)
	return other.Namespace == carrier.Namespace && matches.Matches(labels.Set(other.Labels))
}

// inDomain reports whether there is such a Pod on a node of the same domain.
func (c *domainCluster) inDomain(n *corev1.Node, key string, of func(*corev1.Pod) bool) bool {
	value, ok := n.Labels[key]
	if !ok {
		return false
	}
	for _, other := range c.Pods {
		at := c.Nodes[other.Spec.NodeName]
		if at == nil || !of(other) {
			continue
		}
		if there, ok := at.Labels[key]; ok && there == value {
			return true
		}
	}
	return false
}

func (c *domainCluster) inAnyDomain(n *corev1.Node, of func(p *corev1.Pod, key string) bool) bool {
	for key := range n.Labels {
		if c.inDomain(n, key, func(p *corev1.Pod) bool { return of(p, key) }) {
			return true
		}
	}
	return false
}
