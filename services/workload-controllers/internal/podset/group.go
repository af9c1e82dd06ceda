package podset

import (
	"container/heap"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/workload-controllers/internal/rank"
)

// group are the Pods under one key, with their figures.
type group struct {
	key     Key
	folds   *folds
	members map[types.UID]member
	counts  [maxFigures]int32
	lists   map[Figure]map[types.UID]*corev1.Pod

	// looked says that the owner of the Pods has said by spec how it looks at them.
	looked   bool
	spec     Spec
	selector string // spec.Selector as text, to notice another
	// waiting are ready Pods that are not available yet, the first to become so on top. Those of them that are gone, no
	// longer ready or available by now are passed over.
	waiting byReadiness
}

// member is a Pod of a group and what holds for it there.
type member struct {
	entry   *entry
	figures figures
}

// put takes in a Pod or its next state. A Pod that stays ready stays available.
func (g *group) put(e *entry) {
	last, had := g.members[e.pod.UID]
	next := member{e, g.figuresOf(e)}
	stays := last.figures.has(Ready) && next.figures.has(Ready) && last.entry.readySince.Equal(e.readySince)
	if stays && last.figures.has(Available) {
		next.figures = next.figures.with(Available, true)
	}
	if had {
		g.count(last, -1)
	}
	g.members[e.pod.UID] = next
	g.count(next, 1)
	if g.waits(next) && (!stays || !g.waits(last)) {
		heap.Push(&g.waiting, readiness{e.pod.UID, e.readySince})
	}
}

// drop takes out a Pod.
func (g *group) drop(uid types.UID) {
	if last, ok := g.members[uid]; ok {
		delete(g.members, uid)
		g.count(last, -1)
	}
}

// look makes the group's figures those of the spec. All Pods are gone through only when the spec is another than
// before.
func (g *group) look(spec Spec) {
	selector := spec.Selector.String()
	if g.looked && g.selector == selector && g.spec.MinReady == spec.MinReady &&
		maps.Equal(g.spec.Template, spec.Template) {
		return
	}
	g.looked, g.spec, g.selector = true, spec, selector
	g.counts, g.lists, g.waiting = [maxFigures]int32{}, nil, nil
	for uid, m := range g.members {
		m.figures = g.figuresOf(m.entry)
		g.members[uid] = m
		g.count(m, 1)
		if g.waits(m) {
			g.waiting = append(g.waiting, readiness{uid, m.entry.readySince})
		}
	}
	heap.Init(&g.waiting)
}

// figuresOf returns what holds for a Pod in this group at once; time may make it available later.
func (g *group) figuresOf(e *entry) figures {
	f := e.figures
	if !g.looked {
		return f
	}
	set := labels.Set(e.pod.Labels)
	if !g.spec.Selector.Matches(set) {
		return f.with(Unmatched, f.has(Active)).with(Active, false).with(Ready, false).with(Terminating, false)
	}
	return f.with(Labelled, f.has(Active) && contains(set, g.spec.Template)).
		with(Available, f.has(Ready) && g.spec.MinReady <= 0)
}

// count adds a Pod to the figures, or takes it off with by = -1.
func (g *group) count(m member, by int32) {
	m.figures.each(func(figure Figure) { g.counts[figure] += by })
	(m.figures & g.folds.listed).each(func(figure Figure) { g.list(figure, m.entry.pod, by == 1) })
}

func (g *group) list(figure Figure, pod *corev1.Pod, add bool) {
	if !add {
		delete(g.lists[figure], pod.UID)
		return
	}
	if g.lists == nil {
		g.lists = map[Figure]map[types.UID]*corev1.Pod{}
	}
	if g.lists[figure] == nil {
		g.lists[figure] = map[types.UID]*corev1.Pod{}
	}
	g.lists[figure][pod.UID] = pod
}

// pods returns the Pods for which a figure holds.
func (g *group) pods(figure Figure) []*corev1.Pod {
	if g.counts[figure] == 0 {
		return nil
	}
	pods := make([]*corev1.Pod, 0, g.counts[figure])
	if g.folds.listed.has(figure) {
		for _, pod := range g.lists[figure] {
			pods = append(pods, pod)
		}
		return pods
	}
	for _, m := range g.members {
		if m.figures.has(figure) {
			pods = append(pods, m.entry.pod)
		}
	}
	return pods
}

// waits reports whether a Pod will be available when it just stays ready.
func (g *group) waits(m member) bool {
	return g.looked && m.figures.has(Ready) && !m.figures.has(Available)
}

// pass counts the Pods as available whose time has come.
func (g *group) pass(now time.Time) {
	for len(g.waiting) > 0 {
		first := g.waiting[0]
		if m := g.members[first.uid]; g.waits(m) && m.entry.readySince.Equal(first.since) {
			if first.since.Add(g.spec.MinReady).After(now) {
				return
			}
			g.count(m, -1)
			m.figures = m.figures.with(Available, true)
			g.members[first.uid] = m
			g.count(m, 1)
		}
		heap.Pop(&g.waiting)
	}
}

// observe returns the figures; pass must have been called.
func (g *group) observe() Counts {
	counts := Counts{
		Active: g.counts[Active], Labelled: g.counts[Labelled], Ready: g.counts[Ready],
		Available: g.counts[Available], Terminating: g.counts[Terminating], Unmatched: g.pods(Unmatched),
	}
	if len(g.waiting) > 0 {
		counts.NextAvailable = g.waiting[0].since.Add(g.spec.MinReady)
	}
	return counts
}

func (g *group) countNodes(perNode map[string]int) {
	for _, m := range g.members {
		if m.entry.figures.has(Active) && m.entry.pod.Spec.NodeName != "" {
			perNode[m.entry.pod.Spec.NodeName]++
		}
	}
}

func (g *group) ranked(perNode map[string]int) []rank.Pod {
	pods := make([]rank.Pod, 0, g.counts[Active])
	for _, m := range g.members {
		if !m.figures.has(Active) {
			continue
		}
		if m.entry.ranked == nil {
			ranked := rank.Of(m.entry.pod)
			m.entry.ranked = &ranked
		}
		pod := *m.entry.ranked
		pod.Colocated = perNode[pod.Node]
		pods = append(pods, pod)
	}
	return pods
}

func contains(set, all labels.Set) bool {
	for key, value := range all {
		if has, ok := set[key]; !ok || has != value {
			return false
		}
	}
	return true
}

// readiness is since when a Pod has been ready.
type readiness struct {
	uid   types.UID
	since time.Time
}

// byReadiness is a heap, the Pod that has been ready longest on top.
type byReadiness []readiness

func (h byReadiness) Len() int           { return len(h) }
func (h byReadiness) Less(i, j int) bool { return h[i].since.Before(h[j].since) }
func (h byReadiness) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *byReadiness) Push(x any) { *h = append(*h, x.(readiness)) }

// Pop implements heap.Interface.
func (h *byReadiness) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
