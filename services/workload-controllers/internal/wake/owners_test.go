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
