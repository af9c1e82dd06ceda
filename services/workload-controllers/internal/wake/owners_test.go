package wake

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/podset"
)

var app = map[string]string{"app": "web"}

func newOwners() Owners {
	owners := NewOwners(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	owners.Selectors.Put(&metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"},
		&metav1.LabelSelector{MatchLabels: app})
	return owners
}

func names(requests []reconcile.Request) []string {
	var all []string
	for _, request := range requests {
		all = append(all, request.Name)
	}
	return all
}

func TestPodWakes(t *testing.T) {
	owner := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "owner"}
	other := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: app}}
	going := pod.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, row := range map[string]struct {
		pod    *corev1.Pod
		change podset.Change
		want   []string
	}{
		"a Pod of a set":           {pod, podset.Change{After: owner}, []string{"owner"}},
		"a Pod that it lost":       {pod, podset.Change{Before: owner, After: other}, []string{"owner"}},
		"a Pod that it had":        {pod, podset.Change{Before: owner, Ended: true}, []string{"owner"}},
		"a Pod of another kind":    {pod, podset.Change{After: other}, nil},
		"a Pod to adopt":           {pod, podset.Change{}, []string{"web"}},
		"a Pod that has ended":     {pod, podset.Change{Ended: true}, nil},
		"a Pod that is going":      {going, podset.Change{}, nil},
		"a Pod of no set's labels": {&corev1.Pod{}, podset.Change{}, nil},
	} {
		if got := names(newOwners().OfPod(row.pod, row.change)); !slices.Equal(got, row.want) {
			t.Errorf("%s wakes %v, want %v", name, got, row.want)
		}
	}
}

// A change of a Pod asks for each owner once: every request goes into a queue.
func TestAPodWakesItsOwnerOnce(t *testing.T) {
	owner := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "owner", UID: "1"}
	next := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "next", UID: "2"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: app}}
	for _, row := range []struct {
		before, after *metav1.OwnerReference
		want          []string
	}{{owner, owner, []string{"owner"}}, {owner, next, []string{"owner", "next"}}} {
		got := names(newOwners().OfPod(pod, podset.Change{Before: row.before, After: row.after}))
		if !slices.Equal(got, row.want) {
			t.Errorf("%s, then %s: wakes %v, want %v", row.before.Name, row.after.Name, got, row.want)
		}
	}
}

// What a Pod goes through until it is ready asks for its owner twice: when it is there, and when it is ready.
func TestACreatedPodWakesItsOwnerTwice(t *testing.T) {
	owners, index, asked := newOwners(), podset.NewIndex(), 0
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "p", Labels: app,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "web",
			Controller: new(true)}}}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	for _, next := range []func(*corev1.Pod){
		func(*corev1.Pod) {},
		func(p *corev1.Pod) { p.Spec.NodeName = "n" },
		func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		},
	} {
		pod = pod.DeepCopy()
		next(pod)
		asked += len(owners.OfPod(pod, index.Upsert(pod)))
	}
	if asked != 2 {
		t.Errorf("it asked %d times, want 2", asked)
	}
}

// That a Pod got its node is nothing to an owner that does not place its Pods; whatever else changed with it is.
func TestABindingWakesNobody(t *testing.T) {
	owner := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "owner", UID: "1"}
	pod := func(changes ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: app,
			Annotations: map[string]string{"a": "b"}, Finalizers: []string{"f"}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}}}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	bound := func(p *corev1.Pod) {
		p.Spec.NodeName = "n"
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled})
	}
	another := *owner
	another.UID = "2"
	for name, row := range map[string]struct {
		last   *corev1.Pod
		change func(*corev1.Pod)
		then   podset.Change
		wakes  bool
	}{
		"a binding":               {last: pod()},
		"a new Pod that is bound": {last: nil, wakes: true},
		"a Pod that has its node": {last: pod(bound), wakes: true},
		"and it runs": {pod(), func(p *corev1.Pod) { p.Status.Phase = "Running" }, podset.Change{},
			true},
		"and it goes": {pod(), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} },
			podset.Change{}, true},
		"and it has other labels":      {pod(), func(p *corev1.Pod) { p.Labels = nil }, podset.Change{}, true},
		"and it has other annotations": {pod(), func(p *corev1.Pod) { p.Annotations = nil }, podset.Change{}, true},
		"and it has no finalizer":      {pod(), func(p *corev1.Pod) { p.Finalizers = nil }, podset.Change{}, true},
		"and it lost a condition": {pod(), func(p *corev1.Pod) { p.Status.Conditions = nil }, podset.Change{},
			true},
		"and it tells of its container": {pod(), startedAgain, podset.Change{}, true},
		"and it is ready": {pod(), func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady})
		}, podset.Change{}, true},
		"and it is another's": {pod(), nil, podset.Change{After: &another}, true},
		"and it is gone":      {pod(), nil, podset.Change{Gone: true}, true},
	} {
		now := pod(bound)
		if row.change != nil {
			row.change(now)
		}
		change := row.then
		change.Before, change.Last = owner, row.last
		if change.After == nil {
			change.After = owner
		}
		owners := newOwners()
		if got := owners.OfPod(now, change); (len(got) > 0) != row.wakes {
			t.Errorf("%s: wakes %v", name, names(got))
		}
		owners.Place = true
		if len(owners.OfPod(now, change)) == 0 {
			t.Errorf("%s: an owner that places its Pods is not woken up", name)
		}
	}
}

func startedAgain(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
}

func TestOwnedWakes(t *testing.T) {
	controlled := func(apiVersion, kind string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: app,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner",
				Controller: new(true)}}}}
	}
	orphan := controlled("", "")
	orphan.OwnerReferences = nil
	for name, row := range map[string]struct {
		revision *appsv1.ControllerRevision
		want     []string
	}{
		"its own":           {controlled("apps/v1", "StatefulSet"), []string{"owner"}},
		"nobody's":          {orphan, []string{"web"}},
		"another kind's":    {controlled("apps/v1", "DaemonSet"), nil},
		"another API's set": {controlled("apps.example.com/v1", "StatefulSet"), nil},
	} {
		type change = event.TypedUpdateEvent[*appsv1.ControllerRevision]
		foreign := controlled("apps/v1", "DaemonSet")
		for verb, fire := range map[string]func(handler.TypedFuncs[*appsv1.ControllerRevision, reconcile.Request],
			Queue){
			"made": func(h handler.TypedFuncs[*appsv1.ControllerRevision, reconcile.Request], q Queue) {
				h.CreateFunc(t.Context(), event.TypedCreateEvent[*appsv1.ControllerRevision]{Object: row.revision}, q)
			},
			"changed": func(h handler.TypedFuncs[*appsv1.ControllerRevision, reconcile.Request], q Queue) {
				h.UpdateFunc(t.Context(), change{ObjectOld: row.revision, ObjectNew: row.revision}, q)
			},
			"gained": func(h handler.TypedFuncs[*appsv1.ControllerRevision, reconcile.Request], q Queue) {
				h.UpdateFunc(t.Context(), change{ObjectOld: foreign, ObjectNew: row.revision}, q)
			},
			"lost": func(h handler.TypedFuncs[*appsv1.ControllerRevision, reconcile.Request], q Queue) {
				h.UpdateFunc(t.Context(), change{ObjectOld: row.revision, ObjectNew: foreign}, q)
			},
			"deleted": func(h handler.TypedFuncs[*appsv1.ControllerRevision, reconcile.Request], q Queue) {
				h.DeleteFunc(t.Context(), event.TypedDeleteEvent[*appsv1.ControllerRevision]{Object: row.revision}, q)
			},
		} {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			fire(Owned[*appsv1.ControllerRevision](newOwners()), q)
			var got []string
			for q.Len() > 0 {
				request, _ := q.Get()
				got = append(got, request.Name)
				q.Done(request)
			}
			q.ShutDown()
			if !slices.Equal(got, row.want) {
				t.Errorf("%s, %s: wakes %v, want %v", name, verb, got, row.want)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, row := range []struct {
		reference *metav1.OwnerReference
		kind      schema.GroupKind
		want      bool
	}{
		{nil, schema.GroupKind{Kind: "Job", Group: "batch"}, false},
		{&metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job"}, schema.GroupKind{Kind: "Job", Group: "batch"},
			true},
		{&metav1.OwnerReference{APIVersion: "batch/v2", Kind: "Job"}, schema.GroupKind{Kind: "Job", Group: "batch"},
			true},
		{&metav1.OwnerReference{APIVersion: "v1", Kind: "Job"}, schema.GroupKind{Kind: "Job", Group: "batch"}, false},
		{&metav1.OwnerReference{APIVersion: "v1", Kind: "Pod"}, schema.GroupKind{Kind: "Pod"}, true},
		{&metav1.OwnerReference{APIVersion: "x/v1", Kind: "Pod"}, schema.GroupKind{Kind: "Pod"}, false},
	} {
		if got := Names(row.reference, row.kind); got != row.want {
			t.Errorf("%v of %v: %t", row.reference, row.kind, got)
		}
	}
}
