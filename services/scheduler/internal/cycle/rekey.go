package cycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/groups"
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
	subject.Terms = c.carry(o, c.asks(profile, o)...)
	subject.SelectedBy = c.state.TermsThatSelect(o, subject.Terms)
	subject.Volumes = c.book.Demand(o)
	subject.Devices = c.devices.Blocked(o)
	return c.classes.Join(profile, subject)
}

// asks returns the terms that a Pod carries while it waits.
func (c *Cycle) asks(profile *rules.Profile, o *corev1.Pod) (specs []columns.TermSpec) {
	var (
		group labels.Selector
		known bool
	)
	for i := range profile.Rules {
		asks := profile.Rules[i].Asks
		if asks == nil {
			continue
		}
		if !known {
			group, known = c.groups.Selector(o), true
		}
		specs = append(specs, asks(o, group)...)
	}
	return specs
}

// carry notes the terms that a Pod carries, these among them.
func (c *Cycle) carry(o *corev1.Pod, specs ...columns.TermSpec) []*columns.Term {
	for _, terms := range c.terms {
		specs = append(specs, terms(o)...)
	}
	return c.state.Carry(o.UID, specs)
}

// rekey notes which waiting Pods are selected by a term that is placed, or that was and that nobody carries any more.
// What there is of such terms has a price for each Pod, so it is heeded when the Pod is looked at: what is placed helps
// nobody who waits, and where carriers leave the old class of a Pod tells. Who is nominated heeds it at once, as others
// look at its class.
func (c *Cycle) rekey() {
	changed := c.state.TakeTerms()
	if len(changed) == 0 {
		return
	}
	defer c.classes.ForgetOutdated()
	changed = slices.DeleteFunc(changed, func(t *columns.Term) bool { return t.OneSided || !t.Placed() })
	if len(changed) == 0 {
		return
	}
	for _, p := range c.pods {
		selects := func(t *columns.Term) bool { return t.Selects(p.object) }
		if p.placed() || p.stale || !slices.ContainsFunc(changed, selects) {
			continue
		}
		if p.stale = true; p.nominated != "" {
			c.heed(p)
		}
	}
}

// heed finds the class of a Pod anew for which terms of others were placed or dropped. Where it stands in the queue it
// stays.
func (c *Cycle) heed(p *pod) {
	if !p.stale {
		return
	}
	p.stale = false
	joined := c.join(p.profile, p.object)
	c.classes.Leave(p.class)
	if joined == p.class {
		return
	}
	c.unschedulable.reclass(p, joined)
}

// SetGroup notes a Service or a controller that is new or changed.
func (c *Cycle) SetGroup(g groups.Group) { c.groups.Set(g) }

// RemoveGroup notes that a Service or a controller is gone.
func (c *Cycle) RemoveGroup(name groups.Name) { c.groups.Remove(name) }

// SetNamespace notes the labels of a namespace, none where it is gone.
func (c *Cycle) SetNamespace(name string, of labels.Set) {
	if c.state.SetNamespace(name, of) {
		c.relabelled[name] = true
	}
}

// readGroups looks again at the Pods whose Services or controllers have changed, and at those in namespaces that have
// changed so that other terms select their Pods.
func (c *Cycle) readGroups(now time.Time) {
	belongs := c.groups.TakeChanged()
	if belongs == nil && len(c.relabelled) == 0 {
		return
	}
	var found []*pod
	for _, p := range c.pods {
		if !p.placed() && (c.relabelled[p.object.Namespace] || belongs != nil && belongs(p.object)) {
			found = append(found, p)
		}
	}
	clear(c.relabelled)
	slices.SortFunc(found, older)
	for _, p := range found {
		c.enqueue(p, p.object, now)
	}
}
