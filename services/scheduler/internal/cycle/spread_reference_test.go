package cycle_test

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/groups"
)

// groupSet is the Services and controllers.
type groupSet struct {
	groups map[groups.Name]any
}

// systemSpread are the constraints of Pods without any.
var systemSpread = []corev1.TopologySpreadConstraint{
	{TopologyKey: "kubernetes.io/hostname", MaxSkew: 3, WhenUnsatisfiable: corev1.ScheduleAnyway},
	{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 5, WhenUnsatisfiable: corev1.ScheduleAnyway},
}

// groupSelector is what selects the Pods of all groups that the Pod belongs to.
func (c *cluster) groupSelector(p *corev1.Pod) labels.Selector {
	set, ofController := labels.Set{}, labels.Set{}
	var more labels.Requirements
	for name, o := range c.groups {
		owned := name.Namespace == p.Namespace && len(p.OwnerReferences) > 0 && *p.OwnerReferences[0].Controller &&
			p.OwnerReferences[0].Kind == name.Kind && p.OwnerReferences[0].Name == name.Name
		switch g := o.(type) {
		case *corev1.Service:
			if name.Namespace == p.Namespace && len(g.Spec.Selector) > 0 && containsAll(p.Labels, g.Spec.Selector) {
				set = labels.Merge(set, g.Spec.Selector)
			}
		case *corev1.ReplicationController:
			if owned {
				ofController = g.Spec.Selector
			}
		case *appsv1.ReplicaSet:
			if owned {
				s, _ := metav1.LabelSelectorAsSelector(g.Spec.Selector)
				more, _ = s.Requirements()
			}
		case *appsv1.StatefulSet:
			if owned {
				s, _ := metav1.LabelSelectorAsSelector(g.Spec.Selector)
				more, _ = s.Requirements()
			}
		}
	}
	return labels.Merge(set, ofController).AsSelector().Add(more...)
}

func containsAll(all, some map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// spreading is a constraint and what it selects.
type spreading struct {
	corev1.TopologySpreadConstraint
	selector labels.Selector
	inAll    bool
}

func (c *cluster) spreadings(p *corev1.Pod, action corev1.UnsatisfiableConstraintAction) (out []spreading) {
	for _, s := range p.Spec.TopologySpreadConstraints {
		selector, _ := metav1.LabelSelectorAsSelector(s.LabelSelector)
		for _, key := range s.MatchLabelKeys {
			if value, ok := p.Labels[key]; ok {
				r, _ := labels.NewRequirement(key, "=", []string{value})
				selector = selector.Add(*r)
			}
		}
		if s.LabelSelector == nil {
			selector = labels.Nothing()
		}
		if s.WhenUnsatisfiable == action {
			out = append(out, spreading{s, selector, true})
		}
	}
	if len(p.Spec.TopologySpreadConstraints) > 0 {
		return out
	}
	spreads, inAll := c.spreads, true
	if spreads == nil {
		spreads, inAll = systemSpread, false
	}
	if selector := c.groupSelector(p); !selector.Empty() {
		for _, s := range spreads {
			if s.WhenUnsatisfiable == action {
				out = append(out, spreading{s, selector, inAll})
			}
		}
	}
	return out
}

// eligible reports whether the node is one of those over which the constraint spreads.
func (s *spreading) eligible(p *corev1.Pod, n *corev1.Node, all []spreading) bool {
	for _, other := range all {
		if _, ok := n.Labels[other.TopologyKey]; !ok && s.inAll {
			return false
		}
	}
	if _, ok := n.Labels[s.TopologyKey]; !ok {
		return false
	}
	if (s.NodeAffinityPolicy == nil || *s.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor) && !matches(p, n) {
		return false
	}
	return s.NodeTaintsPolicy == nil || *s.NodeTaintsPolicy == corev1.NodeInclusionPolicyIgnore ||
		intolerable(p, n, corev1.TaintEffectNoSchedule)+intolerable(p, n, corev1.TaintEffectNoExecute) == 0
}

func (c *cluster) matching(s *spreading, p *corev1.Pod, n *corev1.Node) int {
	count := 0
	for _, other := range c.on(n) {
		if other.Namespace == p.Namespace && other.DeletionTimestamp == nil &&
			s.selector.Matches(labels.Set(other.Labels)) {
			count++
		}
	}
	return count
}

// perDomain counts the matching Pods of each domain that has a node to spread over.
func (c *cluster) perDomain(s *spreading, p *corev1.Pod, all []spreading) map[string]int {
	counts := map[string]int{}
	for _, n := range c.Nodes {
		if s.eligible(p, n, all) {
			counts[n.Labels[s.TopologyKey]] += c.matching(s, p, n)
		}
	}
	return counts
}

// unevenness says why the constraints keep the Pod from the node.
func (c *cluster) unevenness(p *corev1.Pod, n *corev1.Node) string {
	hard := c.spreadings(p, corev1.DoNotSchedule)
	for i := range hard {
		s := &hard[i]
		value, ok := n.Labels[s.TopologyKey]
		if !ok {
			return "node(s) didn't match pod topology spread constraints (missing required label)"
		}
		counts := c.perDomain(s, p, hard)
		least := math.MaxInt32
		for _, count := range counts {
			least = min(least, count)
		}
		if s.MinDomains != nil && len(counts) < int(*s.MinDomains) {
			least = 0
		}
		skew := counts[value] - least
		if s.selector.Matches(labels.Set(p.Labels)) {
			skew++
		}
		if skew > int(s.MaxSkew) {
			return "node(s) didn't match pod topology spread constraints"
		}
	}
	return ""
}

// addEvenness adds the weighted score by the constraints that only prefer.
func (c *cluster) addEvenness(p *corev1.Pod, scores map[string]int64) {
	soft := c.spreadings(p, corev1.ScheduleAnyway)
	if len(soft) == 0 {
		return
	}
	var among []*corev1.Node
	for name := range scores {
		has := 0
		for _, s := range soft {
			if _, ok := c.Nodes[name].Labels[s.TopologyKey]; ok {
				has++
			}
		}
		if has == len(soft) || !soft[0].inAll {
			among = append(among, c.Nodes[name])
		}
	}
	raw := map[string]float64{}
	for i := range soft {
		s := &soft[i]
		counts := c.perDomain(s, p, soft)
		values := map[string]bool{}
		for _, n := range among {
			values[n.Labels[s.TopologyKey]] = true
		}
		size := len(values)
		if s.TopologyKey == corev1.LabelHostname {
			size = len(among)
		}
		for _, n := range among {
			value, ok := n.Labels[s.TopologyKey]
			if !ok {
				continue
			}
			count := counts[value]
			if s.TopologyKey == corev1.LabelHostname {
				count = c.matching(s, p, n)
			}
			raw[n.Name] += float64(count)*math.Log(float64(size)+2) + float64(s.MaxSkew) - 1
		}
	}
	least, greatest := int64(math.MaxInt64), int64(0)
	for _, n := range among {
		score := int64(math.Round(raw[n.Name]))
		least, greatest = min(least, score), max(greatest, score)
	}
	for _, n := range among {
		score := int64(100)
		if greatest > 0 {
			score = 100 * (greatest + least - int64(math.Round(raw[n.Name]))) / greatest
		}
		scores[n.Name] += c.weigh("PodTopologySpread", 2) * score
	}
}
