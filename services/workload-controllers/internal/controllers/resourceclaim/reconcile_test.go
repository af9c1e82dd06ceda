package resourceclaim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events/eventstest"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// fixture is a controller over an API in memory. Its caches show what show has put there.
type fixture struct {
	*Controller
	api  client.WithWatch
	told *eventstest.Recorded
	// fails reports whether a request fails: before it is carried out, or after.
	fails func(verb string) (before, after bool)
}

var errLost = errors.New("the connection is lost")

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{told: &eventstest.Recorded{}, fails: func(string) (bool, bool) { return false, false }}
	made := 0
	around := func(verb string, request func() error) error {
		before, after := f.fails(verb)
		if before {
			return errLost
		}
		if err := request(); err != nil {
			return err
		}
		if after {
			return errLost
		}
		return nil
	}
	f.api = fake.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(&corev1.Pod{},
		&resourcev1.ResourceClaim{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return around("create", func() error {
				made++
				o.SetName(fmt.Sprint(o.GetGenerateName(), made))
				return c.Create(ctx, o, options...)
			})
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			return around("patch", func() error { return c.SubResource(sub).Patch(ctx, o, p, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			options ...client.SubResourceUpdateOption) error {
			return around("status", func() error { return c.SubResource(sub).Update(ctx, o, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return around("update", func() error { return c.Update(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return around("delete", func() error { return c.Delete(ctx, o, options...) })
		},
	}).Build()
	s := stores{}
	for _, store := range []*toolscache.Indexer{&s.pods, &s.claims, &s.templates} {
		*store = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	}
	if err := s.index(); err != nil {
		t.Fatal(err)
	}
	pending := gate.New()
	f.Controller = &Controller{client: f.api, live: f.api, stores: s, gate: pending, recorder: f.told,
		writer: &write.Writer{Client: f.api, Kind: "resourceclaim", Gate: pending, Store: s.claims}}
	f.show(t)
	return f
}

// show copies the API's objects into the caches.
func (f *fixture) show(t *testing.T) {
	t.Helper()
	pods, claims, templates := &corev1.PodList{}, &resourcev1.ResourceClaimList{},
		&resourcev1.ResourceClaimTemplateList{}
	for _, list := range []client.ObjectList{pods, claims, templates} {
		if err := f.api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, f.stores.pods, pods.Items)
	fill(t, f.stores.claims, claims.Items)
	fill(t, f.stores.templates, templates.Items)
}

func fill[T any](t *testing.T, store toolscache.Indexer, items []T) {
	t.Helper()
	all := make([]any, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	if err := store.Replace(all, "1"); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) claims(t *testing.T) []resourcev1.ResourceClaim {
	t.Helper()
	list := &resourcev1.ResourceClaimList{}
	if err := f.api.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (f *fixture) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := f.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// Despite failed requests and lost answers a Pod ends up with one claim, which its status names.
func TestAPodComesToItsClaims(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := newFixture(t, newPod(), newTemplate())
		crashes := 3
		lost := 0
		f.fails = func(verb string) (bool, bool) {
			if crashes == 0 {
				return false, false
			}
			crashes--
			before, after := r.IntN(2) == 0, r.IntN(2) == 0
			if after && !before && verb == "create" {
				lost++
			}
			return before, after
		}
		for range 10 {
			_, err := f.Reconcile(t.Context(), wake.Request("default", "web"))
			if err != nil && !errors.Is(err, errLost) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			f.show(t)
		}
		claims, statuses := f.claims(t), f.pod(t).Status.ResourceClaimStatuses
		if len(claims) != 1 || len(statuses) != 1 || statuses[0].Name != "gpu" ||
			*statuses[0].ResourceClaimName != claims[0].Name {
			t.Fatalf("seed %d: %d claims after %d lost answers, the Pod says %+v", seed, len(claims), lost, statuses)
		}
	}
}

func TestReconcilePod(t *testing.T) {
	f := newFixture(t, newPod())
	if _, err := f.Reconcile(t.Context(), wake.Request("default", "web")); err != nil || len(f.claims(t)) != 0 ||
		len(*f.told) != 1 || !strings.Contains((*f.told)[0], `resource claim template "one-gpu" not found`) {
		t.Errorf("without a template: %v, %d claims, told %q", err, len(f.claims(t)), *f.told)
	}
	refuses := newFixture(t, newPod(), newTemplate())
	refuses.fails = func(verb string) (bool, bool) { return verb == "create", false }
	if _, err := refuses.Reconcile(t.Context(), wake.Request("default", "web")); !errors.Is(err, errLost) ||
		len(*refuses.told) != 1 || !strings.HasPrefix((*refuses.told)[0], "Warning FailedResourceClaimCreation") {
		t.Errorf("refused: %v, told %q", err, *refuses.told)
	}
	if _, err := f.Reconcile(t.Context(), wake.Request("default", "gone")); err != nil {
		t.Errorf("a Pod that is gone: %v", err)
	}
}

func TestReconcileClaim(t *testing.T) {
	claim := func(changes ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
		return claimOf("a", "gpu", changes...)
	}
	ended := newPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	of := func(uid string) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) {
			serving("web-uid")(c)
			c.Status.ReservedFor[0].Name = "web"
			if uid != "" {
				c.Status.ReservedFor[0].UID = "before"
			}
		}
	}
	for name, row := range map[string]struct {
		pod    *corev1.Pod
		unseen bool
		claim  *resourcev1.ResourceClaim
		want   string
	}{
		"its Pod is there": {pod: newPod(), claim: claim(of(""), protected),
			want: "allocated, for 1, [other resource.kubernetes.io/delete-protection]"},
		"its Pod is not seen yet": {pod: newPod(), unseen: true, claim: claim(of(""), protected),
			want: "allocated, for 1, [other resource.kubernetes.io/delete-protection]"},
		"its Pod has ended": {pod: ended, claim: claim(of(""), protected),
			want: "going, free, for 0, [other]"},
		"its Pod is gone": {claim: claim(of(""), protected), want: "free, for 0, [other]"},
		"another has its name": {pod: newPod(), claim: claim(of("before"), protected),
			want: "free, for 0, [other]"},
		"another has, and is not seen": {pod: newPod(), unseen: true, claim: claim(of("before"), protected),
			want: "free, for 0, [other]"},
		"made for a Pod that ended": {pod: ended, claim: claim(), want: "gone"},
	} {
		objects := []client.Object{row.claim}
		if row.pod != nil {
			objects = append(objects, row.pod)
		}
		f := newFixture(t, objects...)
		if row.unseen {
			fill(t, f.stores.pods, []corev1.Pod{})
		}
		if _, err := f.Reconcile(t.Context(), claimRequest("default", "a")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := stateOf(f.claims(t)); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

func stateOf(claims []resourcev1.ResourceClaim) string {
	if len(claims) == 0 {
		return "gone"
	}
	c, allocated, going := claims[0], "free", ""
	if c.Status.Allocation != nil {
		allocated = "allocated"
	}
	if c.DeletionTimestamp != nil {
		going = "going, "
	}
	return fmt.Sprintf("%s%s, for %d, %v", going, allocated, len(c.Status.ReservedFor), c.Finalizers)
}

// A Pod is woken when it may lack a claim, a claim when a consumer may no longer need it; nothing else is woken.
func TestWhatWakes(t *testing.T) {
	f := newFixture(t, newPod(), newTemplate())
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	expect := func(what string, want ...string) {
		t.Helper()
		var woken []string
		for q.Len() > 0 {
			request, _ := q.Get()
			woken = append(woken, request.Name)
			q.Done(request)
		}
		slices.Sort(woken)
		if !slices.Equal(woken, want) {
			t.Errorf("%s wakes %q, want %q", what, woken, want)
		}
	}
	pods, claims, templates := f.onPod(), f.onClaim(), f.onTemplate()
	appear := func(pod *corev1.Pod) {
		pods.CreateFunc(t.Context(), event.TypedCreateEvent[*corev1.Pod]{Object: pod}, q)
	}
	change := func(pod *corev1.Pod) {
		pods.UpdateFunc(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: newPod(), ObjectNew: pod}, q)
	}
	named := newPod(says("gpu", "a"))
	appear(newPod())
	expect("a new Pod", "web")
	appear(named)
	expect("a Pod at the start", "web")
	appear(newPod(func(p *corev1.Pod) { p.Spec.ResourceClaims = nil }))
	expect("a Pod without claims")
	change(newPod())
	expect("a change of a Pod that lacks one", "web")
	change(named)
	expect("a change of a Pod that lacks none")
	change(newPod(says("gpu", "a"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))
	expect("the end of a Pod", "claim/a", "claim/fabric")
	pods.DeleteFunc(t.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: named}, q)
	expect("a Pod that is gone", "claim/a", "claim/fabric")
	templates.CreateFunc(t.Context(), event.TypedCreateEvent[*resourcev1.ResourceClaimTemplate]{Object: newTemplate()},
		q)
	expect("a new template", "web")

	plain := &resourcev1.ResourceClaim{}
	plain.Namespace, plain.Name = "default", "plain"
	made := func(claim *resourcev1.ResourceClaim) {
		claims.CreateFunc(t.Context(), event.TypedCreateEvent[*resourcev1.ResourceClaim]{Object: claim}, q)
	}
	made(plain)
	expect("a claim of nobody")
	made(claimOf("a", "gpu"))
	expect("a claim that was made for a Pod", "claim/a")
	used := plain.DeepCopy()
	serving("1")(used)
	claims.UpdateFunc(t.Context(), event.TypedUpdateEvent[*resourcev1.ResourceClaim]{ObjectOld: plain, ObjectNew: used},
		q)
	expect("a claim that is for somebody", "claim/plain")
	claims.DeleteFunc(t.Context(), event.TypedDeleteEvent[*resourcev1.ResourceClaim]{Object: claimOf("a", "gpu")}, q)
	expect("the end of a Pod's claim", "web")
	claims.DeleteFunc(t.Context(), event.TypedDeleteEvent[*resourcev1.ResourceClaim]{Object: plain}, q)
	expect("the end of another")
}
