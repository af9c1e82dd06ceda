// Package podtopologyspread spreads Pods over the domains of node labels, as spec.topologySpreadConstraints asks.
//
// How many Pods there are in each domain is a table of package columns, kept up to date: the rule looks at the count of
// a domain, and at the least of all.
//
//keelson:decision
package podtopologyspread

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

const name = "PodTopologySpread"

// Defaults are the constraints of Pods that have none and belong to a Service or a controller.
type Defaults struct {
	Constraints []corev1.TopologySpreadConstraint
	// System is set for SystemDefaults: nodes without one of the labels are spread over by the others.
	System bool
}

// SystemDefaults spread softly over hosts and zones.
func SystemDefaults() Defaults {
	soft := func(key string, skew int32) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew,
			WhenUnsatisfiable: corev1.ScheduleAnyway}
	}
	return Defaults{System: true, Constraints: []corev1.TopologySpreadConstraint{
		soft(corev1.LabelHostname, 3), soft(corev1.LabelTopologyZone, 5)}}
}

// Rule refuses nodes where a constraint DoNotSchedule would be broken, and ranks nodes by how evenly the constraints
// ScheduleAnyway would be met.
func Rule(d Defaults) rules.Rule {
	return rules.Rule{Name: name, Weight: 2, Key: d.key, Asks: d.asks, Filter: d.filter, Score: d.score}
}

// asks returns a term for each constraint, in their order.
func (d Defaults) asks(p *corev1.Pod, group labels.Selector) []columns.TermSpec {
	if own := p.Spec.TopologySpreadConstraints; len(own) > 0 {
		specs := make([]columns.TermSpec, 0, len(own))
		for i := range own {
			specs = append(specs, term(p, &own[i]))
		}
		return specs
	}
	if group == nil {
		return nil
	}
	var specs []columns.TermSpec
	for i := range d.Constraints {
		specs = append(specs, spec(p, d.Constraints[i].TopologyKey, group))
	}
	return specs
}

// term returns what a constraint of the Pod counts. One that cannot be read counts nothing and says so by its purpose.
func term(p *corev1.Pod, c *corev1.TopologySpreadConstraint) columns.TermSpec {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		unread := spec(p, c.TopologyKey, labels.Nothing())
		unread.Purpose = fmt.Sprintf("%s: %s", name, err)
		return unread
	}
	same := labels.Set{}
	for _, key := range c.MatchLabelKeys {
		if value, ok := p.Labels[key]; ok {
			same[key] = value
		}
	}
	if len(same) == 0 {
		return spec(p, c.TopologyKey, selector)
	}
	return spec(p, c.TopologyKey, selector, same.AsSelector())
}

func spec(p *corev1.Pod, key string, selectors ...labels.Selector) columns.TermSpec {
	return columns.TermSpec{Purpose: name, TopologyKey: key, Namespaces: []string{p.Namespace}, Selectors: selectors,
		LiveOnly: true, OneSided: true}
}

// constraint is one of the Pod's, or one of the defaults, and what it counts.
type constraint struct {
	*corev1.TopologySpreadConstraint
	term *columns.Term
}

// constraints returns those of the Pod that have the action.
func (d Defaults) constraints(p rules.Pod, action corev1.UnsatisfiableConstraintAction) []constraint {
	terms := termsOf(p)
	all := p.Spec.TopologySpreadConstraints
	if len(all) == 0 {
		all = d.Constraints
	}
	var out []constraint
	for i, t := range terms {
		if all[i].WhenUnsatisfiable == action {
			out = append(out, constraint{&all[i], t})
		}
	}
	return out
}

func termsOf(p rules.Pod) []*columns.Term {
	return slices.DeleteFunc(slices.Clone(p.Terms), func(t *columns.Term) bool {
		return len(t.Purpose) < len(name) || t.Purpose[:len(name)] != name
	})
}

// key appends the constraints but for what they count, which the terms say, and the nodes over which they spread.
func (d Defaults) key(b []byte, p rules.Pod) []byte {
	if len(p.Terms) == 0 || len(termsOf(p)) == 0 {
		return b
	}
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		b = fmt.Appendf(b, "%d %s %d %s %s,", c.MaxSkew, c.WhenUnsatisfiable, minDomains(c),
			affinityPolicy(c), taintsPolicy(c))
	}
	return appendEligible(b, p, true, true)
}

func minDomains(c *corev1.TopologySpreadConstraint) int {
	if c.MinDomains == nil {
		return 1
	}
	return int(*c.MinDomains)
}
