package cycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/devices"
	"keelson.dev/services/scheduler/internal/groups"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/volumes"
)

// classification says of which class each Pod is that waits, and which terms Pods carry.
type classification struct {
	state         *columns.State
	classes       *class.Set
	terms         []func(*corev1.Pod) []columns.TermSpec // of each rule, whatever the profile
	book          *volumes.Book
	devices       *devices.Book
	groups        *groups.Book
	pods          map[types.UID]*pod
	extenders     *extenders
	unschedulable *unschedulable
}

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
func (k *classification) join(profile *rules.Profile, o *corev1.Pod) *class.Class {
	subject := rules.PodOf(o, k.state.Usage(o))
	subject.Terms = k.carry(o, k.asks(profile, o)...)
	subject.SelectedBy = k.state.TermsThatSelect(o, subject.Terms)
	subject.Volumes = k.book.Demand(o)
	subject.Devices = k.devices.Blocked(o)
	return k.classes.Join(profile, subject)
}

// asks returns the terms that a Pod carries while it waits.
func (k *classification) asks(profile *rules.Profile, o *corev1.Pod) (specs []columns.TermSpec) {
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
			group, known = k.groups.Selector(o), true
		}
		specs = append(specs, asks(o, group)...)
	}
	return specs
}

// carry notes the terms that a Pod carries, these among them.
func (k *classification) carry(o *corev1.Pod, specs ...columns.TermSpec) []*columns.Term {
	for _, terms := range k.terms {
		specs = append(specs, terms(o)...)
	}
	return k.state.Carry(o.UID, specs)
}

// classify takes over the newest version of a Pod without a node and reports whether it changed in what rules read.
// Then it is nowhere in the queue.
func (k *classification) classify(p *pod, o *corev1.Pod) bool {
	joined := k.join(p.profile, o)
	if p.class != nil {
		k.classes.Leave(p.class)
	}
	changed := p.class != joined || isGated(p.object) != isGated(o)
	if changed {
		k.unschedulable.remove(p)
		p.last, p.answer = nil, nil
	}
	p.object, p.class, p.unread, p.stale = o, joined, false, false
	if p.waits() || p.phase == gated {
		p.rest()
	}
	p.asks = k.extenders.consulted(o)
	p.Class, p.Priority = joined.ID, columns.Priority(o)
	return changed
}

// rekey notes which waiting Pods are selected by a term that was placed or that lost its last carrier. Such terms have
// a price for each Pod, so a Pod heeds them when it is looked at: a placed term helps no waiting Pod, and the old class
// of a Pod notices where carriers leave. A nominated Pod heeds them at once, as others look at its class.
func (k *classification) rekey() {
	changed := k.state.TakeTerms()
	if len(changed) == 0 {
		return
	}
	defer k.classes.ForgetOutdated()
	changed = slices.DeleteFunc(changed, func(t *columns.Term) bool { return t.OneSided || !t.Placed() })
	if len(changed) == 0 {
		return
	}
	for _, p := range k.pods {
		selects := func(t *columns.Term) bool { return t.Selects(p.object) }
		if p.placed() || p.stale || !slices.ContainsFunc(changed, selects) {
			continue
		}
		if p.stale = true; p.nominated != "" {
			k.heed(p)
		}
	}
}

// heed classifies a Pod again if terms of others were placed or dropped. The Pod keeps its place in the queue.
func (k *classification) heed(p *pod) {
	if !p.stale {
		return
	}
	p.stale = false
	joined := k.join(p.profile, p.object)
	k.classes.Leave(p.class)
	if joined == p.class {
		return
	}
	k.unschedulable.reclass(p, joined)
}

// reread classifies a Pod again if its claims, or the terms of others, have changed since.
func (k *classification) reread(p *pod) {
	if p.unread {
		k.classify(p, p.object)
	}
	k.heed(p)
}

// renew classifies a Pod with volumes again, as others may have been promised what it would get, and also a Pod that
// has terms of others to heed.
func (k *classification) renew(p *pod) {
	if p.class.Pod.Volumes != nil {
		k.classify(p, p.object)
	}
	k.heed(p)
}
