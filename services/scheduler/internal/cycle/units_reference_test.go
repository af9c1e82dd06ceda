package cycle_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// unit returns the Pods that go with this one or not at all, itself among them, the most important first.
func (c *rivals) unit(p *corev1.Pod) []*corev1.Pod {
	g := p.Spec.SchedulingGroup
	if g == nil || p.DeletionTimestamp != nil {
		return []*corev1.Pod{p}
	}
	group := c.groups[*g.PodGroupName]
	if group == nil || group.Spec.DisruptionMode == nil || group.Spec.DisruptionMode.All == nil {
		return []*corev1.Pod{p}
	}
	var all []*corev1.Pod
	for _, other := range c.Pods {
		o := other.Spec.SchedulingGroup
		if o != nil && *o.PodGroupName == *g.PodGroupName && other.DeletionTimestamp == nil {
			all = append(all, other)
		}
	}
	slices.SortFunc(all, important)
	return all
}

// units sorts Pods by what goes together.
func (c *rivals) units(pods []*corev1.Pod) (units [][]*corev1.Pod) {
	for _, p := range pods {
		if unit := c.unit(p); !slices.ContainsFunc(units, func(u []*corev1.Pod) bool { return u[0] == unit[0] }) {
			units = append(units, unit)
		}
	}
	return units
}

// parties sorts Pods of lower priority by what goes together, and leaves out of what one may not go for the Pod.
func (c *rivals) parties(p *corev1.Pod, lower []*corev1.Pod) (parties [][]*corev1.Pod) {
	for _, other := range lower {
		unit := c.unit(other)
		stays := slices.ContainsFunc(unit, func(o *corev1.Pod) bool { return rank(o) >= rank(p) })
		if g := other.Spec.SchedulingGroup; len(unit) > 1 || g != nil && other.DeletionTimestamp == nil {
			group := c.groups[*g.PodGroupName]
			together := group != nil && group.Spec.DisruptionMode != nil && group.Spec.DisruptionMode.All != nil
			stays = stays || together && int64(*group.Spec.Priority) >= rank(p)
		}
		known := slices.ContainsFunc(parties, func(party []*corev1.Pod) bool { return party[0] == unit[0] })
		if !stays && !known {
			parties = append(parties, unit)
		}
	}
	return parties
}

// inOrder puts the parties into the order in which they may stay, those first of which one overdraws a budget, and says
// which Pods do.
func (c *rivals) inOrder(parties [][]*corev1.Pod) ([][]*corev1.Pod, map[*corev1.Pod]bool) {
	slices.SortFunc(parties, func(a, b []*corev1.Pod) int { return important(a[0], b[0]) })
	used, overdrawn := map[string]int32{}, map[*corev1.Pod]bool{}
	for _, other := range c.disrupted {
		c.overdraws(other, used)
	}
	var bound, able [][]*corev1.Pod
	for _, party := range parties {
		over := false
		for _, other := range party {
			overdrawn[other] = c.overdraws(other, used)
			over = over || overdrawn[other]
		}
		if over {
			bound = append(bound, party)
		} else {
			able = append(able, party)
		}
	}
	return slices.Concat(bound, able), overdrawn
}

func (c *rivals) overdraws(p *corev1.Pod, used map[string]int32) bool {
	overdrawn := false
	for name, b := range c.budgets {
		selector, _ := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if b.Namespace != p.Namespace || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		used[name]++
		overdrawn = overdrawn || used[name] > b.Status.DisruptionsAllowed
	}
	return overdrawn
}
