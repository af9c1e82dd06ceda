package statefulset

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
)

func newWaker() *Controller {
	c := &Controller{owners: wake.NewOwners(kind), gate: gate.New()}
	c.remember(newSet())
	return c
}

// woken returns whom an event wakes up.
func woken[O any](h handler.TypedFuncs[O, reconcile.Request], fire func(handler.TypedFuncs[O, reconcile.Request],
	wake.Queue)) []string {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	fire(h, q)
	var names []string
	for q.Len() > 0 {
		request, _ := q.Get()
		names = append(names, request.Name)
		q.Done(request)
	}
	return names
}

// SET-040: a claim that is gone wakes up its set. What a claim is bound to does not.
func TestClaimWakes(t *testing.T) {
	made := input(newSet(claimed), "", "").Set
	free := newClaim(made, 0, 0)
	owned, bound, foreign := free.DeepCopy(), free.DeepCopy(), free.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web-0", UID: "web-0"}}
	bound.Status.Phase, foreign.Labels = corev1.ClaimBound, nil
	type handlers = handler.TypedFuncs[*corev1.PersistentVolumeClaim, reconcile.Request]
	updated := func(to *corev1.PersistentVolumeClaim) func(handlers, wake.Queue) {
		return func(h handlers, q wake.Queue) {
			h.UpdateFunc(t.Context(), event.TypedUpdateEvent[*corev1.PersistentVolumeClaim]{ObjectOld: free,
				ObjectNew: to}, q)
		}
	}
	deleted := func(gone *corev1.PersistentVolumeClaim) func(handlers, wake.Queue) {
		return func(h handlers, q wake.Queue) {
			h.DeleteFunc(t.Context(), event.TypedDeleteEvent[*corev1.PersistentVolumeClaim]{Object: gone}, q)
		}
	}
	for name, row := range map[string]struct {
		fire func(handlers, wake.Queue)
		want []string
	}{
		"with another owner": {updated(owned), []string{"web"}}, "bound": {updated(bound), nil},
		"deleted": {deleted(free), []string{"web"}}, "another's": {deleted(foreign), nil},
	} {
		if got := woken(newWaker().onClaim(), row.fire); !slices.Equal(got, row.want) {
			t.Errorf("%s: wakes %v, want %v", name, got, row.want)
		}
	}
}

// A set that is gone wakes up for nothing, and nothing waits for what it wrote.
func TestForget(t *testing.T) {
	c := newWaker()
	c.gate.Await("set", "pod", func() bool { return false })
	c.forget(newSet())
	if requests := c.owners.OfPod(podOf("0r1"), podset.Change{}); len(requests) > 0 || !c.gate.IsOpen("set") {
		t.Errorf("%v, gate open: %t", requests, c.gate.IsOpen("set"))
	}
}

// SET-018, SET-020, SET-055: the controller may do nothing to volumes, and nothing to Services.
func TestRules(t *testing.T) {
	for _, rule := range Registration(nil, 1).Rules {
		for _, resource := range []string{"persistentvolumes", "services", "*"} {
			if slices.Contains(rule.Resources, resource) {
				t.Errorf("it may %v %s", rule.Verbs, resource)
			}
		}
		if slices.Contains(rule.Resources, "persistentvolumeclaims") && slices.Contains(rule.Verbs, "delete") {
			t.Error("it may delete claims")
		}
	}
}
