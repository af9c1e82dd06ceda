package podset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
)

const tracking = "batch.kubernetes.io/job-tracking"

// world is an index and, beside it, all that it was told.
type world struct {
	t     *testing.T
	r     *rand.Rand
	index *Index
	// pods and services are what there is; selections are closed now and then.
	pods       map[types.UID]*corev1.Pod
	services   map[string]*corev1.Service
	selections *Selections
	finalizer  Figure
	registered bool
	generation int64
}

// The groups and figures of the index are those that going through all Pods gives, whatever happened in whatever
// order.
func TestGroupsAgreeWithGoingThroughAll(t *testing.T) {
	for seed := range uint64(200) {
		w := &world{t: t, r: rand.New(rand.NewPCG(seed, 9)), index: NewIndex(), pods: map[types.UID]*corev1.Pod{},
			services: map[string]*corev1.Service{}}
		w.selections = NewSelections(w.index)
		other := NewSelections(w.index)
		for step := range 120 {
			w.step()
			w.check(fmt.Sprintf("seed %d, step %d", seed, step))
		}
		other.Close()
		for _, service := range w.services {
			w.selections.Remove(service)
		}
		for _, pod := range w.pods {
			w.index.Delete(pod)
		}
		if len(w.index.pods)+len(w.index.groups) != 0 {
			t.Fatalf("seed %d: something is kept of nothing", seed)
		}
	}
}

func (w *world) step() {
	switch uid := types.UID(fmt.Sprint(w.r.IntN(10))); w.r.IntN(12) {
	case 0, 1:
		w.index.Delete(newPod(uid, ""))
		delete(w.pods, uid)
	case 2:
		w.generation++
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns", w.r.IntN(2)),
			Name: fmt.Sprint("s", w.r.IntN(2)), Generation: w.generation}}
		service.Spec.Selector = map[string]string{"app": []string{"web", "debug"}[w.r.IntN(2)]}
		if w.r.IntN(3) == 0 {
			service.Spec.Selector["v"] = "1"
		}
		w.put(service)
	case 3:
		for name, service := range w.services {
			w.selections.Remove(service)
			delete(w.services, name)
			break
		}
	case 4:
		if !w.registered && w.r.IntN(4) == 0 {
			w.finalizer, w.registered = w.index.Register(WithFinalizer(tracking)), true
		}
	case 5:
		if w.r.IntN(4) == 0 {
			w.selections.Close()
			w.selections = NewSelections(w.index)
			for _, service := range w.services {
				w.put(service)
			}
		}
	default:
		pod := anyPod(w.r, uid, start)
		pod.Namespace = fmt.Sprint("ns", w.r.IntN(2))
		pod.Spec.NodeName = []string{"", "n0", "n1"}[w.r.IntN(3)]
		if w.r.IntN(2) == 0 {
			pod.Finalizers = []string{"other", tracking}[:1+w.r.IntN(2)]
		}
		if last := w.pods[uid]; last != nil {
			pod.Namespace = last.Namespace // an object stays in its namespace
		}
		w.index.Upsert(pod)
		w.pods[uid] = pod
	}
}

func (w *world) put(service *corev1.Service) {
	w.selections.Put(service, &metav1.LabelSelector{MatchLabels: service.Spec.Selector})
	w.services[service.Namespace+"/"+service.Name] = service
}

// check compares every group with what going through all Pods gives.
func (w *world) check(where string) {
	w.t.Helper()
	for _, uid := range []types.UID{"o", "other", "nobody"} {
		w.compare(where+", owner "+string(uid), Owner(uid), func(pod *corev1.Pod) bool {
			controller := metav1.GetControllerOf(pod)
			return controller != nil && controller.UID == uid
		})
	}
	for _, node := range []string{"n0", "n1", "n2"} {
		w.compare(where+", node "+node, Node(node), func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node })
	}
	for _, namespace := range []string{"ns0", "ns1"} {
		in := func(pod *corev1.Pod) bool { return pod.Namespace == namespace }
		w.compare(where+", namespace "+namespace, Namespace(namespace), in)
		var orphans []*corev1.Pod
		for _, pod := range w.pods {
			if in(pod) && podview.IsActive(pod) && metav1.GetControllerOf(pod) == nil && pod.Labels["app"] == "web" {
				orphans = append(orphans, pod)
			}
		}
		if got, want := names(w.index.Orphans(namespace, web.Selector)), names(orphans); !slices.Equal(got, want) {
			w.t.Fatalf("%s: orphans %v, want %v", where, got, want)
		}
		for _, name := range []string{"s0", "s1"} {
			service := w.services[namespace+"/"+name]
			w.compare(where+", service "+name, w.selections.Key(namespace, name), func(pod *corev1.Pod) bool {
				return service != nil && in(pod) &&
					labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
			})
		}
	}
}

func (w *world) compare(where string, key Key, in func(*corev1.Pod) bool) {
	w.t.Helper()
	holds := map[Figure]func(*corev1.Pod) bool{
		Active: podview.IsActive, Terminal: podview.IsTerminal,
		Ready:  func(pod *corev1.Pod) bool { return podview.IsActive(pod) && podview.IsReady(pod) },
		Failed: func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed },
		Terminating: func(pod *corev1.Pod) bool {
			return pod.DeletionTimestamp != nil && !podview.IsTerminal(pod)
		},
		Orphan: func(pod *corev1.Pod) bool {
			return podview.IsActive(pod) && metav1.GetControllerOf(pod) == nil
		},
		Labelled: none, Available: none, Unmatched: none, // of groups that no owner has looked at
	}
	if w.registered {
		holds[w.finalizer] = func(pod *corev1.Pod) bool {
			return podview.IsTerminal(pod) && slices.Contains(pod.Finalizers, tracking)
		}
	}
	for figure, hold := range holds {
		var want []*corev1.Pod
		for _, pod := range w.pods {
			if in(pod) && hold(pod) {
				want = append(want, pod)
			}
		}
		got := w.index.Pods(key, figure)
		if !slices.Equal(names(got), names(want)) || w.index.Count(key, figure) != len(want) {
			w.t.Fatalf("%s, figure %d: %v, counted as %d; want %v", where, figure, names(got),
				w.index.Count(key, figure), names(want))
		}
	}
}

func none(*corev1.Pod) bool { return false }

func names(pods []*corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

// A name stands for one fold, and there is room for a few only.
func TestRegister(t *testing.T) {
	index := NewIndex()
	first := index.Register(WithFinalizer(tracking))
	if again := index.Register(WithFinalizer(tracking)); again != first {
		t.Errorf("the same fold is figure %d, then %d", first, again)
	}
	if other := index.Register(WithFinalizer("other")); other == first {
		t.Error("two folds are one figure")
	}
	if active := index.Register(Fold{Name: "active"}); active != Active {
		t.Errorf("the fold %q is figure %d", "active", active)
	}
	for n := range 5 {
		index.Register(Fold{Name: fmt.Sprint(n), Holds: none})
	}
	defer func() {
		if recover() == nil {
			t.Error("a 17th fold has found room")
		}
	}()
	index.Register(Fold{Name: "one too many", Holds: none})
}

// Kinds of objects do not get in each other's way, nor does the end of one.
func TestKindsOfSelections(t *testing.T) {
	index := NewIndex()
	kinds := []*Selections{NewSelections(index), NewSelections(index), NewSelections(index)}
	object := &metav1.ObjectMeta{Namespace: "default", Name: "x"}
	for n, kind := range kinds {
		kind.Put(object, &metav1.LabelSelector{MatchLabels: map[string]string{"v": fmt.Sprint(n)}})
	}
	index.Upsert(newPod("a", "o"))
	check := func(when string, want ...int) {
		t.Helper()
		for n, kind := range kinds {
			if got := index.Count(kind.Key("default", "x"), Active); got != want[n] {
				t.Errorf("%s: %d Pods of kind %d, want %d", when, got, n, want[n])
			}
		}
	}
	check("all there", 0, 1, 0)
	kinds[0].Close()
	index.Upsert(newPod("b", "o"))
	check("the first closed", 0, 2, 0)
	kinds[1].Close()
	index.Upsert(newPod("c", "o"))
	check("the second closed", 0, 0, 0)
}

// A Pod that waits for its time takes one place in the heap, however often it changes.
func TestWaitingTakesOnePlace(t *testing.T) {
	index, spec := NewIndex(), web
	spec.MinReady = time.Minute
	index.Upsert(newPod("a", "o", readySince(start)))
	index.Observe("o", spec, start)
	for range 100 {
		index.Upsert(newPod("a", "o", readySince(start)))
	}
	if waiting := len(index.groups[Owner("o")].waiting); waiting != 1 {
		t.Errorf("%d places for one Pod", waiting)
	}
}
