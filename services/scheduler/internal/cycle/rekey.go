package cycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// termsOf returns what says which terms a Pod carries. It is asked of every Pod, whatever its profile: what a Pod of
// another scheduler carries counts too.
func termsOf(profiles []rules.Profile) (terms []func(*corev1.Pod) []columns.TermSpec) {
	seen := map[string]bool{}
	for i := range profiles {
		for _, rule := range profiles[i].Rules {
			if rule.Terms != nil && !seen[rule.Name] {
				seen[rule.Name] = true
				terms = append(terms, rule.Terms)
			}
		}
	}
	return terms
}

// join returns the class of a Pod.
func (c *Cycle) join(profile *rules.Profile, o *corev1.Pod) *class.Class {
	subject := rules.PodOf(o, c.state.Usage(o))
	subject.Terms, subject.SelectedBy = c.carry(o), c.state.TermsThatSelect(o)
	subject.Volumes = c.book.Demand(o)
	return c.classes.Join(profile, subject)
}

// carry notes the terms that a Pod carries.
func (c *Cycle) carry(o *corev1.Pod) []*columns.Term {
	var specs []columns.TermSpec
	for _, terms := range c.terms {
		specs = append(specs, terms(o)...)
	}
	return c.state.Carry(o.UID, specs)
}

// rekey finds the class anew of each waiting Pod that is selected by a term that is new, or that nobody carries any
// more. Where the Pods stand in the queue they stay.
func (c *Cycle) rekey() {
	changed := c.state.TakeTerms()
	if len(changed) == 0 {
		return
	}
	for _, p := range c.pods {
		if p.node != "" || !slices.ContainsFunc(changed, func(t *columns.Term) bool { return t.Selects(p.object) }) {
			continue
		}
		joined := c.join(p.profile, p.object)
		c.classes.Leave(p.class)
		if joined == p.class {
			continue
		}
		c.mayLeaveRoom(p)
		p.class = joined
		c.queue.Reclass(&p.Entry, joined.ID)
		if c.queue.HasUnschedulable(joined.ID) {
			c.unschedulable.add(joined)
			c.unschedulable.again[joined.ID] = joined
		}
	}
	c.classes.ForgetOutdated()
}
