package remedy

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules/tainttoleration"
)

// finder collects the smallest changes of each kind.
type finder struct {
	state   *columns.State
	subject Subject
	judges  *judges
	kinds   map[string]*kind
}

// kind is the smallest changes of one kind, the smallest first.
type kind struct {
	of   []string
	best []candidate
}

// candidate is a change that makes a node fit, as far as the reasons against the node say.
type candidate struct {
	Change
	slot columns.Slot
}

// consider works out what would have to change for one node. There is nothing where a rule refuses it for which no
// small change is known.
func (f *finder) consider(slot columns.Slot, v columns.View, found []refusal) {
	c := candidate{slot: slot}
	for _, r := range found {
		if !f.cure(&c, v, r) {
			return
		}
	}
	if len(c.Labels) > 0 || c.Uncordon {
		if f.judges.looksAtDomains() {
			return // over which nodes the Pod spreads may change too
		}
		c.Node = f.state.Name(slot)
	}
	of := c.kind()
	key := strings.Join(of, "/")
	k := f.kinds[key]
	if k == nil {
		k = &kind{of: of}
		f.kinds[key] = k
	}
	k.add(c)
}

// add keeps the change if it is among the smallest.
func (k *kind) add(c candidate) {
	if len(k.best) == maxTries && !smaller(&c.Change, &k.best[maxTries-1].Change) {
		return
	}
	if slices.ContainsFunc(k.best, func(o candidate) bool { return c.same(&o.Change) }) {
		return
	}
	at := slices.IndexFunc(k.best, func(o candidate) bool { return smaller(&c.Change, &o.Change) })
	if at < 0 {
		at = len(k.best)
	}
	k.best = slices.Insert(k.best, at, c)
	k.best = k.best[:min(len(k.best), maxTries)]
}

// cure adds to the change what a refusal asks for; false where nothing does.
func (f *finder) cure(c *candidate, v columns.View, r refusal) bool {
	switch f.judges.filters[r.filter].Rule {
	case "NodeResourcesFit":
		return f.askLess(c, r)
	case "NodePorts":
		node := f.judges.node(c.slot)
		for _, p := range f.subject.Pod.Usage.Ports {
			if !node.PortsFree([]columns.Port{p}) {
				c.Ports = append(c.Ports, p)
			}
		}
	case "TaintToleration":
		f.tolerate(c, v)
	case "NodeUnschedulable":
		c.Uncordon = true
	case "NodeAffinity":
		labels, ok := relabel(f.subject.Pod.Spec, v)
		c.Labels = labels
		return ok
	default:
		return false
	}
	return true
}

// askLess makes the Pod ask for what is left.
func (f *finder) askLess(c *candidate, r refusal) bool {
	node := f.judges.node(c.slot)
	for _, text := range f.judges.texts(r) {
		name, ok := strings.CutPrefix(text, "Insufficient ")
		if !ok {
			return false // no room for another Pod, whatever it asks for
		}
		asked := amountOf(f.subject.Pod.Usage, corev1.ResourceName(name))
		resource, known := f.resource(corev1.ResourceName(name))
		if asked == nil || !known {
			return false
		}
		less := *asked - max(0, node.Free(resource))
		c.Less = append(c.Less, Less{Name: corev1.ResourceName(name), Amount: less, asked: *asked})
		c.share += float64(less) / float64(*asked)
	}
	return true
}

func (f *finder) resource(name corev1.ResourceName) (columns.Resource, bool) {
	for r, basic := range columns.BasicNames {
		if basic == name {
			return columns.Resource(r), true
		}
	}
	for _, a := range f.subject.Pod.Usage.Extended {
		if a.Name == name {
			return a.Resource, true
		}
	}
	return 0, false
}

// tolerate adds the tolerations that the Pod lacks. The taint of a cordoned node goes when the node is uncordoned.
func (f *finder) tolerate(c *candidate, v columns.View) {
	for i := range v.Taints {
		t := &v.Taints[i]
		if t.Effect == corev1.TaintEffectPreferNoSchedule ||
			tainttoleration.Tolerated(f.subject.Pod.Spec.Tolerations, t) {
			continue
		}
		if ofCordon(*t) {
			c.Uncordon = true
			continue
		}
		more := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
		if t.Value == "" {
			more.Operator = corev1.TolerationOpExists
		}
		c.Tolerations = append(c.Tolerations, more)
	}
	slices.SortFunc(c.Tolerations, func(a, b corev1.Toleration) int { return cmp.Compare(taintText(a), taintText(b)) })
}

// changes returns the smallest change of each kind that has been judged to help, but for kinds that ask for more than
// another does.
func (f *finder) changes() []Change {
	all := make([]*kind, 0, len(f.kinds))
	for _, k := range f.kinds {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *kind) int {
		return cmp.Or(cmp.Compare(len(a.of), len(b.of)), slices.Compare(a.of, b.of))
	})
	var done []*kind
	var out []Change
	for _, k := range all {
		if slices.ContainsFunc(done, func(o *kind) bool { return subset(o.of, k.of) }) {
			continue
		}
		for i := range k.best {
			if f.helps(&k.best[i]) {
				done, out = append(done, k), append(out, k.best[i].Change)
				break
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(len(a.Less)+a.edits(), len(b.Less)+b.edits()), strings.Compare(a.Node, b.Node),
			cmp.Compare(a.share, b.share))
	})
	return out[:min(len(out), maxChanges)]
}

func subset(small, large []string) bool {
	return !slices.ContainsFunc(small, func(s string) bool { return !slices.Contains(large, s) })
}

// helps judges the Pod again with the change, and notes which nodes can take it then.
func (f *finder) helps(c *candidate) bool {
	j := newJudges(f.state, c.subject(f.subject))
	defer j.close()
	if c.Node != "" {
		if !j.fits(j.node(c.slot), c.view(f.state.View(c.slot))) {
			return false
		}
		c.Fits = []string{c.Node}
		return true
	}
	for slot := range columns.Slot(f.state.Slots()) {
		if f.state.Known(slot) && j.fits(j.node(slot), f.state.View(slot)) {
			c.Fits = append(c.Fits, f.state.Name(slot))
		}
	}
	slices.Sort(c.Fits)
	return len(c.Fits) > 0
}
