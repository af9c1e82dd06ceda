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

// group are the Pods of one owner. Until the owner has looked at it first, only entries is kept up.
type group struct {
	entries map[types.UID]*entry

	looked    bool
	spec      Spec
	selector  string // spec.Selector as text, to notice another
	counts    Counts // its Unmatched and NextAvailable are filled in by snapshot
	unmatched map[types.UID]*corev1.Pod
	// maturing are ready entries that are not available yet, the first to become so on top. Entries that have been
	// dropped or counted since are passed over.
	maturing byReadiness
}

// add takes in an entry; last is the same Pod's former entry or nil. A Pod that stays ready stays available.
func (g *group) add(e, last *entry) {
	g.entries[e.pod.UID] = e
	if !g.looked {
		return
	}
	g.classify(e)
	if last != nil && last.available && last.owner == e.owner && e.ready && e.readySince.Equal(last.readySince) {
		e.available = true
	}
	g.count(e, 1)
	if e.needsTime() {
		heap.Push(&g.maturing, e)
	}
}

// drop takes out an entry. Its flags stay, so that a successor can inherit them.
func (g *group) drop(e *entry) {
	delete(g.entries, e.pod.UID)
	if g.looked {
		g.count(e, -1)
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
	g.counts, g.unmatched, g.maturing = Counts{}, map[types.UID]*corev1.Pod{}, nil
	for _, e := range g.entries {
		g.classify(e)
		g.count(e, 1)
		if e.needsTime() {
			g.maturing = append(g.maturing, e)
		}
	}
	heap.Init(&g.maturing)
}

// classify sets what depends on the spec.
func (g *group) classify(e *entry) {
	set := labels.Set(e.pod.Labels)
	e.stray = !g.spec.Selector.Matches(set)
	e.labelled = contains(set, g.spec.Template)
	e.available = e.ready && g.spec.MinReady <= 0
}

// count adds an entry to the figures, or takes it off with by = -1.
func (g *group) count(e *entry, by int32) {
	switch {
	case e.terminating && !e.stray:
		g.counts.Terminating += by
	case !e.active:
	case e.stray:
		if by > 0 {
			g.unmatched[e.pod.UID] = e.pod
		} else {
			delete(g.unmatched, e.pod.UID)
		}
	default:
		g.counts.Active += by
		g.counts.Labelled += countIf(e.labelled, by)
		g.counts.Ready += countIf(e.ready, by)
		g.counts.Available += countIf(e.available, by)
	}
}

// mature counts the Pods as available whose time has come.
func (g *group) mature(now time.Time) {
	for len(g.maturing) > 0 {
		e := g.maturing[0]
		if g.entries[e.pod.UID] == e && e.needsTime() {
			if e.readySince.Add(g.spec.MinReady).After(now) {
				return
			}
			e.available = true
			g.counts.Available++
		}
		heap.Pop(&g.maturing)
	}
}

// snapshot returns the figures; mature must have been called.
func (g *group) snapshot() Counts {
	counts := g.counts
	for _, pod := range g.unmatched {
		counts.Unmatched = append(counts.Unmatched, pod)
	}
	if len(g.maturing) > 0 {
		counts.NextAvailable = g.maturing[0].readySince.Add(g.spec.MinReady)
	}
	return counts
}

func (g *group) countNodes(perNode map[string]int) {
	for _, e := range g.entries {
		if e.active && e.pod.Spec.NodeName != "" {
			perNode[e.pod.Spec.NodeName]++
		}
	}
}

func (g *group) ranked(perNode map[string]int) []rank.Pod {
	pods := make([]rank.Pod, 0, len(g.entries))
	for _, e := range g.entries {
		if !e.active || e.stray {
			continue
		}
		if e.ranked == nil {
			ranked := rank.Of(e.pod)
			e.ranked = &ranked
		}
		pod := *e.ranked
		pod.Colocated = perNode[pod.Node]
		pods = append(pods, pod)
	}
	return pods
}

// needsTime says whether a Pod will be available when it just stays ready.
func (e *entry) needsTime() bool { return e.active && e.ready && !e.stray && !e.available }

func contains(set, all labels.Set) bool {
	for key, value := range all {
		if has, ok := set[key]; !ok || has != value {
			return false
		}
	}
	return true
}

func countIf(yes bool, by int32) int32 {
	if yes {
		return by
	}
	return 0
}

// byReadiness is a heap of entries, the one that has been ready longest on top.
type byReadiness []*entry

func (h byReadiness) Len() int           { return len(h) }
func (h byReadiness) Less(i, j int) bool { return h[i].readySince.Before(h[j].readySince) }
func (h byReadiness) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *byReadiness) Push(x any) { *h = append(*h, x.(*entry)) }

// Pop implements heap.Interface.
func (h *byReadiness) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
