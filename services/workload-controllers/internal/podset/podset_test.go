package podset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/pace"
)

var start = time.Unix(1_700_000_000, 0)

var web = Spec{Selector: labels.SelectorFromSet(labels.Set{"app": "web"}), Template: labels.Set{"app": "web", "v": "1"}}

func newPod(uid types.UID, owner types.UID, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: string(uid), UID: uid, Labels: map[string]string{"app": "web", "v": "1"},
	}}
	if owner != "" {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{UID: owner, Kind: "ReplicaSet", Name: string(owner),
			Controller: &yes}}
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func readySince(t time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(t)}}
	}
}

func terminating(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: start} }
func disrupted(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget,
		Status: corev1.ConditionTrue})
}
func failed(pod *corev1.Pod)     { pod.Status.Phase = corev1.PodFailed }
func relabelled(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "debug"} }

func TestObserve(t *testing.T) {
	for _, c := range []struct {
		name string
		pods []*corev1.Pod
		want Counts
	}{
		{"nothing", nil, Counts{}},
		{"a new Pod", []*corev1.Pod{newPod("a", "o")}, Counts{Active: 1, Labelled: 1}},
		{"DEP-140 ready is available without a minimum", []*corev1.Pod{newPod("a", "o", readySince(start))},
			Counts{Active: 1, Labelled: 1, Ready: 1, Available: 1}},
		{"DEP-041 terminating Pods are counted apart", []*corev1.Pod{newPod("a", "o", readySince(start), terminating)},
			Counts{Terminating: 1}},
		{"SAF-075 a Pod that is to be disrupted counts until its deletion begins",
			[]*corev1.Pod{newPod("a", "o", readySince(start), disrupted)}, Counts{Active: 1, Labelled: 1, Ready: 1,
				Available: 1}},
		{"DEP-153 DEP-207 ended Pods do not count", []*corev1.Pod{newPod("a", "o", failed),
			newPod("b", "o", failed, terminating)}, Counts{}},
		{"DEP-152 without all labels of the template",
			[]*corev1.Pod{newPod("a", "o", func(p *corev1.Pod) { delete(p.Labels, "v") })}, Counts{Active: 1}},
		{"DEP-016 Pods of others do not count", []*corev1.Pod{newPod("a", "other"), newPod("b", "")}, Counts{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			index := NewIndex()
			for _, pod := range c.pods {
				index.Upsert(pod)
			}
			if got := index.Observe("o", web, start); !same(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// DEP-141: time alone makes a Pod available, a crash starts the time again.
func TestAvailabilityComesWithTime(t *testing.T) {
	index, spec := NewIndex(), web
	spec.MinReady = 10 * time.Second
	index.Upsert(newPod("a", "o", readySince(start)))
	index.Upsert(newPod("b", "o", readySince(start.Add(5*time.Second))))
	check := func(at time.Duration, available int32, next time.Duration) {
		t.Helper()
		got := index.Observe("o", spec, start.Add(at))
		want := time.Time{}
		if next != 0 {
			want = start.Add(next)
		}
		if got.Available != available || !got.NextAvailable.Equal(want) {
			t.Errorf("at %s: %d available, next at %v; want %d, %v", at, got.Available, got.NextAvailable, available,
				want)
		}
	}
	check(9*time.Second, 0, 10*time.Second)
	check(10*time.Second, 1, 15*time.Second)
	index.Upsert(newPod("a", "o", readySince(start))) // touched, but still ready
	check(10*time.Second, 1, 15*time.Second)
	index.Upsert(newPod("b", "o"))
	check(20*time.Second, 1, 0)
	index.Upsert(newPod("b", "o", readySince(start.Add(20*time.Second))))
	check(29*time.Second, 1, 30*time.Second)
	check(30*time.Second, 2, 0)
	spec.MinReady = 60 * time.Second
	check(61*time.Second, 1, 80*time.Second)
}

func TestChangesNameWhomTheyConcern(t *testing.T) {
	index := NewIndex()
	if change := index.Upsert(newPod("a", "")); change.Before != nil || change.After != nil {
		t.Errorf("of an orphan: %+v", change)
	}
	if got := index.Orphans("default", web.Selector); len(got) != 1 {
		t.Errorf("%d orphans, want 1", len(got))
	}
	if change := index.Upsert(newPod("a", "o")); change.Before != nil || change.After == nil ||
		change.After.UID != "o" {
		t.Errorf("of an adoption: %+v", change)
	}
	if got := index.Orphans("default", web.Selector); len(got) != 0 {
		t.Errorf("%d orphans after adoption", len(got))
	}
	if change := index.Upsert(newPod("a", "o", terminating)); change.Ended {
		t.Error("ended while terminating")
	}
	if change := index.Upsert(newPod("a", "o", failed)); !change.Ended {
		t.Error("not ended though failed")
	}
	if change := index.Delete(newPod("a", "o")); change.Before == nil || change.Before.UID != "o" || change.Ended {
		t.Errorf("of the deletion of a failed Pod: %+v", change)
	}
	index.Upsert(newPod("b", "o"))
	if change := index.Delete(newPod("b", "o")); !change.Ended {
		t.Error("not ended though deleted")
	}
	if change := index.Delete(newPod("b", "o")); change != (Change{}) {
		t.Errorf("of a second deletion: %+v", change)
	}
	if len(index.pods)+len(index.groups) != 0 {
		t.Error("something is remembered about nothing")
	}
}

func TestRankedCountsNodesOfSiblings(t *testing.T) {
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	index := NewIndex()
	for _, pod := range []*corev1.Pod{
		newPod("a", "o", on("n1")), newPod("b", "o", on("n2")), newPod("c", "sibling", on("n2")),
		newPod("d", "stranger", on("n1")),
		newPod("e", "o", on("n1"), terminating), newPod("f", "o", on("n1"), relabelled), newPod("g", "o"),
	} {
		index.Upsert(pod)
	}
	index.Observe("o", web, start)
	got := map[string]int{}
	for _, pod := range index.Ranked("o", []types.UID{"o", "sibling"}) {
		got[pod.Name] = pod.Colocated
	}
	if want := map[string]int{"a": 2, "b": 2, "g": 0}; !maps.Equal(got, want) { // DEP-179
		t.Errorf("got %v, want %v", got, want)
	}
	for _, pod := range []*corev1.Pod{newPod("h", "o", failed), newPod("i", "o", failed, terminating)} {
		index.Upsert(pod)
	}
	if got := index.Unfinished("o"); got != 5 {
		t.Errorf("%d unfinished, want 5", got)
	}
	if got := index.Unfinished("nobody"); got != 0 {
		t.Errorf("%d unfinished of nobody", got)
	}
}

// DEP-157: all Pods of an owner tell at which pace it may make more, as soon as one has failed.
func TestMade(t *testing.T) {
	index := NewIndex()
	index.Upsert(newPod("a", "o", readySince(start)))
	index.Upsert(newPod("b", "other", failed))
	if got := index.Made("o"); got != nil {
		t.Errorf("%v though none has failed", got)
	}
	index.Upsert(newPod("c", "o", failed, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(start) }))
	if got := index.Made("o"); len(got) != 2 || !slices.Contains(got, pace.Pod{Created: start,
		Phase: corev1.PodFailed}) {
		t.Errorf("made %v", got)
	}
	if got := index.Made("nobody"); got != nil {
		t.Errorf("%v of nobody", got)
	}
}

func TestGet(t *testing.T) {
	index, pod := NewIndex(), newPod("a", "o")
	if got := index.Get("a"); got != nil {
		t.Errorf("%v of an empty index", got)
	}
	index.Upsert(pod)
	if got := index.Get("a"); got != pod {
		t.Errorf("%v, want the Pod", got)
	}
}

// An owner that looks in another way sees other Pods, at once.
func TestAnotherLook(t *testing.T) {
	index := NewIndex()
	index.Upsert(newPod("a", "o", readySince(start.Add(time.Hour))))
	every := Spec{Selector: labels.Everything()}
	// DEP-140: without a minimum ready is available, whatever the clocks say.
	if got, want := index.Observe("o", every, start), (Counts{Active: 1, Labelled: 1, Ready: 1,
		Available: 1}); !same(got, want) {
		t.Errorf("through a selector of everything %+v, want %+v", got, want)
	}
	debug := Spec{Selector: labels.SelectorFromSet(labels.Set{"app": "debug"})}
	if got := index.Observe("o", debug, start); got.Active != 0 || len(got.Unmatched) != 1 {
		t.Errorf("through another selector %+v", got)
	}
	for value, labelled := range map[string]int32{"1": 1, "2": 0, "": 0} {
		template := Spec{Selector: labels.Everything(), Template: labels.Set{"v": value}}
		if got := index.Observe("o", template, start); got.Labelled != labelled {
			t.Errorf("of a template with v=%q %d are labelled, want %d", value, got.Labelled, labelled)
		}
	}
	if got := index.Observe("o", Spec{Selector: labels.Everything(), Template: labels.Set{"none": ""}},
		start); got.Labelled != 0 {
		t.Error("a label that is missing is taken for an empty one")
	}
}

// The increments must equal a full recount, regardless of the events and their order.
func TestIncrementsAgreeWithCounting(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		index, model, now := NewIndex(), map[types.UID]*corev1.Pod{}, start
		spec := web
		for step := range 200 {
			now = now.Add(time.Duration(random.IntN(3)) * time.Second)
			uid := types.UID(fmt.Sprint(random.IntN(12)))
			if random.IntN(5) == 0 {
				index.Delete(newPod(uid, ""))
				delete(model, uid)
			} else {
				pod := anyPod(random, uid, now)
				index.Upsert(pod)
				model[uid] = pod
			}
			if random.IntN(20) == 0 {
				spec.MinReady = time.Duration(random.IntN(3)*5) * time.Second
				spec.Template = []labels.Set{{"app": "web"}, {"app": "web", "v": "1"}}[random.IntN(2)]
			}
			got, want := index.Observe("o", spec, now), count(model, spec, now)
			if !same(got, want) {
				t.Fatalf("seed %d, step %d: got %+v, want %+v", seed, step, got, want)
			}
		}
	}
}

func anyPod(random *rand.Rand, uid types.UID, now time.Time) *corev1.Pod {
	pod := newPod(uid, []types.UID{"o", "o", "o", "other", ""}[random.IntN(5)])
	for _, change := range []func(*corev1.Pod){readySince(now.Add(-time.Duration(random.IntN(4)) * time.Second)),
		readySince(start)} {
		if random.IntN(2) == 0 {
			change(pod)
		}
	}
	for _, change := range []func(*corev1.Pod){terminating, failed, relabelled,
		func(p *corev1.Pod) { delete(p.Labels, "v") }} {
		if random.IntN(6) == 0 {
			change(pod)
		}
	}
	return pod
}

// count is the slow, obvious way.
func count(pods map[types.UID]*corev1.Pod, spec Spec, now time.Time) Counts {
	var counts Counts
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil || owner.UID != "o" {
			continue
		}
		matches := spec.Selector.Matches(labels.Set(pod.Labels))
		switch {
		case !podview.IsActive(pod):
			if matches && pod.DeletionTimestamp != nil && !podview.IsTerminal(pod) {
				counts.Terminating++
			}
			continue
		case !matches:
			counts.Unmatched = append(counts.Unmatched, pod)
			continue
		}
		counts.Active++
		if labels.SelectorFromSet(spec.Template).Matches(labels.Set(pod.Labels)) {
			counts.Labelled++
		}
		if podview.IsReady(pod) {
			counts.Ready++
		}
		if podview.IsAvailable(pod, spec.MinReady, now) {
			counts.Available++
		} else if at, ready := podview.AvailableAt(pod, spec.MinReady); ready && (counts.NextAvailable.IsZero() ||
			at.Before(counts.NextAvailable)) {
			counts.NextAvailable = at
		}
	}
	return counts
}

func same(a, b Counts) bool {
	return a.Active == b.Active && a.Labelled == b.Labelled && a.Ready == b.Ready && a.Available == b.Available &&
		a.Terminating == b.Terminating && a.NextAvailable.Equal(b.NextAvailable) && slices.Equal(names(a.Unmatched),
		names(b.Unmatched))
}

// One Pod's change and the look at the figures after it must not cost more in a large set.
func BenchmarkUpsertAndObserve(b *testing.B) {
	for _, size := range []int{10, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			index := NewIndex()
			pods := make([]*corev1.Pod, size)
			for i := range pods {
				pods[i] = newPod(types.UID(fmt.Sprint(i)), "o", readySince(start))
				index.Upsert(pods[i])
			}
			for i := 0; b.Loop(); i++ {
				index.Upsert(pods[i%size])
				index.Observe("o", web, start)
			}
		})
	}
}

func TestMembers(t *testing.T) {
	index := NewIndex()
	for _, pod := range []*corev1.Pod{newPod("a", "web"), newPod("b", "web", failed), newPod("c", "web", terminating),
		newPod("d", "other")} {
		index.Upsert(pod)
	}
	var names []string
	for _, pod := range index.Members(Owner("web")) {
		names = append(names, pod.Name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a", "b", "c"}) || index.Members(Owner("none")) != nil {
		t.Errorf("members %v", names)
	}
}
