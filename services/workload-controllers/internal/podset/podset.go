// Package podset keeps, for every owner of Pods, the figures that decisions need, by increments: one changed Pod costs
// the same in a set of three and in one of ten thousand. It is pure: Pods are handed in, time is given, nothing is
// called.
//
//	Upsert, Delete ──> Index ──┬─ by owner: Group (counts, unmatched, Pods to rank)
//	                           └─ by namespace: Pods without a controller
package podset

import (
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
	// Active Pods have neither ended nor been told to.
	Active int32
	// Labelled, Ready and Available count among the active.
	Labelled, Ready, Available int32
	// Terminating Pods have been told to end and have not.
	Terminating int32
	// Unmatched are active Pods that the selector does not match, to be released.
	Unmatched []*corev1.Pod
	// NextAvailable is when a ready Pod becomes available by the passing of time; zero when none will.
	NextAvailable time.Time
}

// Index holds the Pods of all owners. It is safe for concurrent use. The Pods in it are shared and never changed.
type Index struct {
	mu      sync.Mutex // guards all below
	pods    map[types.UID]*entry
	groups  map[types.UID]*group
	orphans map[string]map[types.UID]*corev1.Pod // by namespace
}

// entry is what the index knows about one Pod at one resource version.
type entry struct {
	pod   *corev1.Pod
	owner types.UID // of the controller; empty without one

	active, terminating, ready bool
	readySince                 time.Time

	// By the owner's Spec:
	stray, labelled, available bool

	// ranked is nil until it is asked for.
	ranked *rank.Pod
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		pods: map[types.UID]*entry{}, groups: map[types.UID]*group{}, orphans: map[string]map[types.UID]*corev1.Pod{},
	}
}

// Change says what a Pod's change means and whom it concerns.
type Change struct {
	// Before and After are the controllers of the Pod, nil where it had or has none.
	Before, After *metav1.OwnerReference
	// Ended tells that the Pod may still have run before and does no more.
	Ended bool
}

// Upsert takes in a Pod as it is now.
func (x *Index) Upsert(pod *corev1.Pod) Change {
	next := newEntry(pod)
	x.mu.Lock()
	defer x.mu.Unlock()
	last := x.pods[pod.UID]
	change := Change{After: metav1.GetControllerOfNoCopy(pod)}
	if last != nil {
		change.Before = metav1.GetControllerOfNoCopy(last.pod)
		change.Ended = last.isUnfinished() && !next.isUnfinished()
		x.remove(last)
	}
	x.pods[pod.UID] = next
	if next.owner != "" {
		x.group(next.owner).add(next, last)
	} else if next.active {
		if x.orphans[pod.Namespace] == nil {
			x.orphans[pod.Namespace] = map[types.UID]*corev1.Pod{}
		}
		x.orphans[pod.Namespace][pod.UID] = pod
	}
	if last != nil && last.owner != next.owner {
		x.dropEmpty(last.owner)
	}
	return change
}

// Delete forgets a Pod.
func (x *Index) Delete(pod *corev1.Pod) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	last := x.pods[pod.UID]
	if last == nil {
		return Change{}
	}
	delete(x.pods, pod.UID)
	x.remove(last)
	x.dropEmpty(last.owner)
	return Change{Before: metav1.GetControllerOfNoCopy(last.pod), Ended: last.isUnfinished()}
}

// Observe returns the figures of an owner's Pods at now.
func (x *Index) Observe(owner types.UID, spec Spec, now time.Time) Counts {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.groups[owner]
	if g == nil {
		return Counts{}
	}
	g.look(spec)
	g.mature(now)
	return g.snapshot()
}

// Unfinished returns how many Pods of an owner have not ended, terminating ones included.
func (x *Index) Unfinished(owner types.UID) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	unfinished := 0
	if g := x.groups[owner]; g != nil {
		for _, e := range g.entries {
			if e.isUnfinished() {
				unfinished++
			}
		}
	}
	return unfinished
}

// Made returns the Pods of an owner as far as the pace of further ones depends on them; nil when none has failed.
func (x *Index) Made(owner types.UID) []pace.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.groups[owner]
	if g == nil {
		return nil
	}
	failed := false
	pods := make([]pace.Pod, 0, len(g.entries))
	for _, e := range g.entries {
		failed = failed || e.pod.Status.Phase == corev1.PodFailed
		pods = append(pods, pace.Pod{Created: e.pod.CreationTimestamp.Time, Phase: e.pod.Status.Phase})
	}
	if !failed {
		return nil
	}
	return pods
}

// Ranked returns the active Pods of an owner as the deletion order sees them. Colocated counts, for each, the active Pods
// on its node of all the siblings together.
func (x *Index) Ranked(owner types.UID, siblings []types.UID) []rank.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	perNode := map[string]int{}
	for _, sibling := range siblings {
		if g := x.groups[sibling]; g != nil {
			g.countNodes(perNode)
		}
	}
	g := x.groups[owner]
	if g == nil {
		return nil
	}
	return g.ranked(perNode)
}

// Orphans returns the active Pods of a namespace that have no controller and that the selector matches.
func (x *Index) Orphans(namespace string, selector labels.Selector) []*corev1.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	var matching []*corev1.Pod
	for _, pod := range x.orphans[namespace] {
		if selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, pod)
		}
	}
	return matching
}

// Get returns the Pod with the UID as the index has it, or nil.
func (x *Index) Get(uid types.UID) *corev1.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.pods[uid]; e != nil {
		return e.pod
	}
	return nil
}

func (x *Index) group(owner types.UID) *group {
	g := x.groups[owner]
	if g == nil {
		g = &group{entries: map[types.UID]*entry{}}
		x.groups[owner] = g
	}
	return g
}

func (x *Index) dropEmpty(owner types.UID) {
	if g := x.groups[owner]; g != nil && len(g.entries) == 0 {
		delete(x.groups, owner)
	}
}

// remove takes an entry out of its group or out of the orphans.
func (x *Index) remove(e *entry) {
	if e.owner != "" {
		x.groups[e.owner].drop(e)
		return
	}
	in := x.orphans[e.pod.Namespace]
	delete(in, e.pod.UID)
	if len(in) == 0 {
		delete(x.orphans, e.pod.Namespace)
	}
}

func newEntry(pod *corev1.Pod) *entry {
	e := &entry{pod: pod}
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		e.owner = controller.UID
	}
	e.active = podview.IsActive(pod)
	e.terminating = podview.IsTerminating(pod) && !podview.IsTerminal(pod)
	if e.active {
		e.readySince, e.ready = podview.AvailableAt(pod, 0)
	}
	return e
}

// isUnfinished says whether a container of the Pod may still run.
func (e *entry) isUnfinished() bool { return e.active || e.terminating }
