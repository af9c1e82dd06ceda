// Package podset groups Pods as decisions need them and keeps the figures of each group by increments: one changed Pod
// costs the same in a set of three and in one of ten thousand. It is pure: Pods are handed in, time is given, nothing
// is called.
//
//	Upsert, Delete ──> Index ──┬─ by owner ────────────┐
//	                           ├─ by node              ├─> group: members, a count for each Fold
//	                           ├─ by namespace         │   (active, ready, terminal, with a finalizer ...)
//	                           └─ by selector of an    │
//	                              object (Selections) ─┘
//
// An owner that has said by a Spec how it looks at its Pods has also those that are available, by the passing of time.
//
//keelson:decision
package podset

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/pace"
	"keelson.dev/services/workload-controllers/internal/rank"
)

// Spec is how an owner looks at its Pods.
type Spec struct {
	// Selector says which Pods the owner may keep.
	Selector labels.Selector
	// Template are the labels of the owner's Pod template.
	Template labels.Set
	// MinReady is how long a Pod has to be ready to be available.
	MinReady time.Duration
}

// Counts are an owner's Pods in figures. Pods that the selector does not match count only as Unmatched.
type Counts struct {
	// Active Pods have neither ended nor are they being deleted.
	Active int32
	// Labelled, Ready and Available count among the active.
	Labelled, Ready, Available int32
	// Terminating Pods are being deleted and have not ended.
	Terminating int32
	// Unmatched are active Pods that the selector does not match, to be released.
	Unmatched []*corev1.Pod
	// NextAvailable is when a ready Pod becomes available by the passing of time; zero when none will.
	NextAvailable time.Time
}

// Key names a group of Pods.
type Key struct {
	by              int
	namespace, name string
}

const (
	byOwner = iota
	byNode
	byNamespace
	bySelection // and above: one for each Selections
)

// Owner names the Pods that an object controls.
func Owner(uid types.UID) Key { return Key{by: byOwner, name: string(uid)} }

// Node names the Pods that are bound to a node.
func Node(name string) Key { return Key{by: byNode, name: name} }

// Namespace names the Pods of a namespace.
func Namespace(name string) Key { return Key{by: byNamespace, namespace: name} }

// Index holds all Pods. It is safe for concurrent use. The Pods in it are shared and never changed.
type Index struct {
	mu         sync.Mutex // guards all below
	folds      folds
	pods       map[types.UID]*entry
	groups     map[Key]*group
	selections []*Selections
}

// entry is what the index knows about one Pod at one resource version.
type entry struct {
	pod        *corev1.Pod
	figures    figures
	readySince time.Time
	// groups are those that the Pod is in; most Pods are in one of each of the three kinds that always exist.
	groups []*group
	room   [bySelection]*group
	// ranked is nil until it is asked for.
	ranked *rank.Pod
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	i := &Index{pods: map[types.UID]*entry{}, groups: map[Key]*group{}}
	for _, fold := range inherentFolds {
		i.folds.add(fold)
	}
	return i
}

// Register makes the index keep one more figure. A fold of a name that it has is the one that it has.
func (i *Index) Register(fold Fold) Figure {
	i.mu.Lock()
	defer i.mu.Unlock()
	figure, added := i.folds.add(fold)
	if added {
		for _, e := range i.pods {
			e.figures = i.folds.of(e.pod)
			for _, g := range e.groups {
				g.put(e)
			}
		}
	}
	return figure
}

// Change says what a Pod's change means and whom it concerns.
type Change struct {
	// Before and After are the controllers of the Pod, nil where it had or has none.
	Before, After *metav1.OwnerReference
	// Last is the Pod as it was, nil for one that is new. It is shared and never changed.
	Last *corev1.Pod
	// Gone says that the Pod no longer exists.
	Gone bool
	// Ended says that the Pod, which may still have run before, no longer runs.
	Ended bool
}

// Upsert takes in a Pod as it is now.
func (i *Index) Upsert(pod *corev1.Pod) Change {
	i.mu.Lock()
	defer i.mu.Unlock()
	next, last := &entry{pod: pod, figures: i.folds.of(pod)}, i.pods[pod.UID]
	next.readySince, _ = podview.AvailableAt(pod, 0)
	next.groups = next.room[:0]
	change := Change{After: metav1.GetControllerOfNoCopy(pod)}
	i.pods[pod.UID] = next
	i.join(next, change.After)
	if last != nil {
		change.Before, change.Last = metav1.GetControllerOfNoCopy(last.pod), last.pod
		change.Ended = !last.figures.has(Terminal) && next.figures.has(Terminal)
		i.leave(last, next.groups)
	}
	return change
}

// Delete forgets a Pod.
func (i *Index) Delete(pod *corev1.Pod) Change {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := i.pods[pod.UID]
	if last == nil {
		return Change{}
	}
	delete(i.pods, pod.UID)
	i.leave(last, nil)
	return Change{Before: metav1.GetControllerOfNoCopy(last.pod), Last: last.pod, Gone: true,
		Ended: !last.figures.has(Terminal)}
}

// join puts a Pod into all its groups.
func (i *Index) join(e *entry, controller *metav1.OwnerReference) {
	if controller != nil {
		i.put(e, Owner(controller.UID))
	}
	if node := e.pod.Spec.NodeName; node != "" {
		i.put(e, Node(node))
	}
	i.put(e, Namespace(e.pod.Namespace))
	for _, s := range i.selections {
		for _, name := range s.Matching(e.pod) {
			i.put(e, s.Key(e.pod.Namespace, name))
		}
	}
}

func (i *Index) put(e *entry, key Key) {
	g := i.groups[key]
	if g == nil {
		g = &group{key: key, folds: &i.folds, members: map[types.UID]member{}}
		i.groups[key] = g
	}
	g.put(e)
	e.groups = append(e.groups, g)
}

// leave takes a Pod out of its groups but those in which it stays.
func (i *Index) leave(e *entry, stays []*group) {
	for _, g := range e.groups {
		if slices.Contains(stays, g) {
			continue
		}
		if g.drop(e.pod.UID); len(g.members) == 0 {
			delete(i.groups, g.key)
		}
	}
}

// Observe returns the figures of an owner's Pods at now.
func (i *Index) Observe(owner types.UID, spec Spec, now time.Time) Counts {
	i.mu.Lock()
	defer i.mu.Unlock()
	g := i.groups[Owner(owner)]
	if g == nil {
		return Counts{}
	}
	g.look(spec)
	g.pass(now)
	return g.observe()
}

// Count returns of how many Pods of a group a figure holds.
func (i *Index) Count(key Key, figure Figure) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if g := i.groups[key]; g != nil {
		return int(g.counts[figure])
	}
	return 0
}

// Pods returns the Pods of a group for which a figure holds, in no order.
func (i *Index) Pods(key Key, figure Figure) []*corev1.Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	if g := i.groups[key]; g != nil {
		return g.pods(figure)
	}
	return nil
}

// Members returns all Pods of a group, in no order.
func (i *Index) Members(key Key) []*corev1.Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	g := i.groups[key]
	if g == nil {
		return nil
	}
	pods := make([]*corev1.Pod, 0, len(g.members))
	for _, m := range g.members {
		pods = append(pods, m.entry.pod)
	}
	return pods
}

// Unfinished returns how many Pods of an owner have not ended, terminating ones included.
func (i *Index) Unfinished(owner types.UID) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if g := i.groups[Owner(owner)]; g != nil {
		return len(g.members) - int(g.counts[Terminal])
	}
	return 0
}

// Made returns the Pods of an owner as far as the pace of further ones depends on them; nil when none has failed.
func (i *Index) Made(owner types.UID) []pace.Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	g := i.groups[Owner(owner)]
	if g == nil || g.counts[Failed] == 0 {
		return nil
	}
	pods := make([]pace.Pod, 0, len(g.members))
	for _, m := range g.members {
		pod := m.entry.pod
		pods = append(pods, pace.Pod{Created: pod.CreationTimestamp.Time, Phase: pod.Status.Phase})
	}
	return pods
}

// Ranked returns the active Pods of an owner as the deletion order sees them. Colocated counts, for each, the active
// Pods on its node of all the siblings together.
func (i *Index) Ranked(owner types.UID, siblings []types.UID) []rank.Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	perNode := map[string]int{}
	for _, sibling := range siblings {
		if g := i.groups[Owner(sibling)]; g != nil {
			g.countNodes(perNode)
		}
	}
	g := i.groups[Owner(owner)]
	if g == nil {
		return nil
	}
	return g.ranked(perNode)
}

// Orphans returns the active Pods of a namespace that have no controller and that the selector matches.
func (i *Index) Orphans(namespace string, selector labels.Selector) []*corev1.Pod {
	return slices.DeleteFunc(i.Pods(Namespace(namespace), Orphan), func(pod *corev1.Pod) bool {
		return !selector.Matches(labels.Set(pod.Labels))
	})
}

// Get returns the Pod with the UID as the index has it, or nil.
func (i *Index) Get(uid types.UID) *corev1.Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	if e := i.pods[uid]; e != nil {
		return e.pod
	}
	return nil
}
