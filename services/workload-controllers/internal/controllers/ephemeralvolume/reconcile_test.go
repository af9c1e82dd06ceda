package ephemeralvolume

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events/eventstest"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

func newController(refuse error, objects ...client.Object) (*Controller, *eventstest.Recorded) {
	api := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if refuse != nil {
				return refuse
			}
			return c.Create(ctx, object, o...)
		}}).Build()
	told := &eventstest.Recorded{}
	return &Controller{client: api, writer: &write.Writer{Client: api, Kind: "persistentvolumeclaim.ephemeral"},
		recorder: told, users: newUsers()}, told
}

func TestReconcile(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	full := errors.New("exceeded quota")
	for name, row := range map[string]struct {
		refuse error
		claim  *corev1.PersistentVolumeClaim
		again  time.Duration
		err    error
		events []string
		owner  string
	}{
		"makes the claim": {owner: "web-uid"},
		"leaves a claim of others": {claim: claimOf("other-uid"), owner: "other-uid", events: []string{
			"Warning FailedBinding ephemeral volume data: PVC default/web-data was not created for pod default/web " +
				"(pod is not owner)"}},
		"its cache is behind": {refuse: apierrors.NewAlreadyExists(claims, "web-data"), again: time.Second},
		"is refused": {refuse: full, err: full, events: []string{
			"Warning FailedBinding ephemeral volume data: create PVC web-data: exceeded quota"}},
	} {
		objects := []client.Object{newPod()}
		if row.claim != nil {
			objects = append(objects, row.claim)
		}
		c, told := newController(row.refuse, objects...)
		result, err := c.steps().Reconcile(t.Context(), wake.Request("default", "web"))
		if !errors.Is(err, row.err) || result.RequeueAfter != row.again || !slices.Equal(*told, row.events) {
			t.Errorf("%s: again in %v, %v, told %q", name, result.RequeueAfter, err, *told)
		}
		made := &corev1.PersistentVolumeClaim{}
		err = c.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web-data"}, made)
		if row.owner == "" && !apierrors.IsNotFound(err) || row.owner != "" && (err != nil ||
			string(made.OwnerReferences[0].UID) != row.owner) {
			t.Errorf("%s: the claim is %+v, %v", name, made.OwnerReferences, err)
		}
	}
}

// A Pod is woken when it is new, and when the claim of its name is gone; nobody else is.
func TestWhatWakesAPod(t *testing.T) {
	c, _ := newController(nil)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	woken := func() (names []string) {
		for q.Len() > 0 {
			request, _ := q.Get()
			names = append(names, request.String())
			q.Done(request)
		}
		return names
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if got := woken(); !slices.Equal(got, want) {
			t.Errorf("%s wakes %q, want %q", what, got, want)
		}
	}
	pods, claims := c.onPod(), c.onClaim()
	appear := func(pod *corev1.Pod) {
		pods.CreateFunc(t.Context(), event.TypedCreateEvent[*corev1.Pod]{Object: pod}, q)
	}
	gone := func(claim *corev1.PersistentVolumeClaim) {
		claims.DeleteFunc(t.Context(), event.TypedDeleteEvent[*corev1.PersistentVolumeClaim]{Object: claim}, q)
	}
	appear(newPod())
	expect("a Pod with a volume", "default/web")
	appear(newPod(func(p *corev1.Pod) { p.Name, p.Spec.Volumes = "plain", nil }))
	expect("a Pod without")
	gone(claimOf(""))
	expect("the end of the claim", "default/web")
	gone(claimOf("", func(c *corev1.PersistentVolumeClaim) { c.Namespace = "other" }))
	expect("the end of another namespace's claim")
	pods.DeleteFunc(t.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: newPod()}, q)
	gone(claimOf(""))
	expect("the end of the claim of a Pod that is gone")
	if len(c.users.pods) > 0 {
		t.Errorf("%v are remembered", c.users.pods)
	}
}
