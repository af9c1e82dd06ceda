package statefulset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events/eventstest"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podfeed/podfeedtest"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// bench is a Controller over an API in memory, which logs what was written. Pods come through an informer; the caches
// of revisions and claims catch up when they are told to.
type bench struct {
	t          *testing.T
	api        client.WithWatch
	pods       *clientsetfake.Clientset
	history    toolscache.Indexer
	claims     toolscache.Indexer
	events     eventstest.Recorded
	mu         sync.Mutex // guards writes: several Pods are made at once
	writes     []string
	refusals   map[string]error // by the text of the write
	controller *Controller
}

func newBench(t *testing.T, in Input) *bench {
	b := &bench{t: t, refusals: map[string]error{}}
	objects := []client.Object{in.Set.DeepCopy()}
	for _, r := range in.Revisions {
		objects = append(objects, r)
	}
	for _, existing := range in.Claims {
		objects = append(objects, existing)
	}
	b.api = fake.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(&appsv1.StatefulSet{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object,
				options ...client.CreateOption) error {
				return b.write("create", o.GetName(), func() error { return c.Create(ctx, o, options...) })
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object,
				options ...client.UpdateOption) error {
				return b.write("update", o.GetName(), func() error { return c.Update(ctx, o, options...) })
			},
		}).Build()
	var pods []runtime.Object
	for _, pod := range in.Pods {
		pods = append(pods, pod)
	}
	b.pods = clientsetfake.NewClientset(pods...)
	serial := 0
	b.pods.PrependReactor("*", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		var err error
		switch action := action.(type) {
		case clienttesting.CreateActionImpl:
			serial++
			pod := action.GetObject().(*corev1.Pod)
			pod.UID, pod.ResourceVersion = types.UID(fmt.Sprint("made-", serial)), fmt.Sprint(1000+serial)
			err = b.write("create", pod.Name, nil)
		case clienttesting.DeleteActionImpl:
			name := action.GetName()
			if version := action.GetDeleteOptions().Preconditions.ResourceVersion; version != nil {
				name += " at " + *version
			}
			err = b.write("delete", name, nil)
		case clienttesting.PatchActionImpl:
			err = b.write("patch", action.GetName(), nil)
		}
		return err != nil, nil, err
	})
	b.connect(in)
	b.catchUp()
	return b
}

func (b *bench) connect(in Input) {
	feed := podfeed.New()
	podfeedtest.Connect(b.t, feed, b.pods)
	b.history = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	b.claims = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	sets := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	revisions, err := ownerindex.Of[*appsv1.ControllerRevision](b.history)
	claims, claimsErr := ownerindex.Of[*corev1.PersistentVolumeClaim](b.claims)
	if err := errors.Join(err, claimsErr, indexClaims(b.claims), sets.Replace(nil, "1000000")); err != nil {
		b.t.Fatal(err)
	}
	pending := gate.New()
	live := liveReader{b.api, b.pods}
	b.controller = &Controller{
		client: b.api, live: live, pods: feed.Index, revisions: revisions, claims: claims, storage: b.claims,
		owners: wake.NewOwners(kind), gate: pending, recorder: &b.events, log: zap.NewNop(),
		now:         func() time.Time { return in.Now },
		sets:        &write.Writer{Client: b.api, Kind: Name, Gate: pending, Store: sets},
		claimWriter: &write.Writer{Client: b.api, Kind: "persistentvolumeclaim", Gate: pending, Store: b.claims},
		history: &controllerrevision.Writer{Live: live,
			Write: &write.Writer{Client: b.api, Kind: "controllerrevision", Gate: pending, Store: b.history}},
		ops: &podops.Operator{Client: b.pods.CoreV1(), FieldManager: Name, Gate: pending, Feed: feed,
			Log: zap.NewNop()},
	}
}

// liveReader reads Pods from where they are.
type liveReader struct {
	client.Reader
	pods *clientsetfake.Clientset
}

func (l liveReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return l.Reader.Get(ctx, key, o, options...)
	}
	found, err := l.pods.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err == nil {
		found.DeepCopyInto(pod)
	}
	return err
}

func (b *bench) write(verb, name string, do func() error) error {
	text := verb + " " + name
	b.mu.Lock()
	b.writes = append(b.writes, text)
	b.mu.Unlock()
	if err := b.refusals[text]; err != nil || do == nil {
		return err
	}
	return do()
}

// catchUp makes the caches show what the API has.
func (b *bench) catchUp() {
	b.t.Helper()
	revisions, claims := &appsv1.ControllerRevisionList{}, &corev1.PersistentVolumeClaimList{}
	if err := errors.Join(b.api.List(b.t.Context(), revisions), b.api.List(b.t.Context(), claims)); err != nil {
		b.t.Fatal(err)
	}
	var r, c []any
	for i := range revisions.Items {
		r = append(r, &revisions.Items[i])
	}
	for i := range claims.Items {
		c = append(c, &claims.Items[i])
	}
	if err := errors.Join(b.history.Replace(r, "0"), b.claims.Replace(c, "0")); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

func (b *bench) reconcile() (reconcile.Result, error) {
	return b.controller.steps().Reconcile(b.t.Context(), wake.Request("default", "web"))
}

// expect makes one pass and compares what was written and said.
func (b *bench) expect(writes, events string) {
	b.t.Helper()
	b.writes, b.events = nil, nil
	if _, err := b.reconcile(); err != nil {
		b.t.Errorf("the pass failed: %v", err)
	}
	b.expectWritten(writes, events)
}

func (b *bench) expectWritten(writes, events string) {
	b.t.Helper()
	if got := strings.Join(b.writes, ", "); got != writes {
		b.t.Errorf("wrote  %s\nwanted %s", got, writes)
	}
	if got := strings.Join(b.events, "\n"); got != events {
		b.t.Errorf("said\n%s\nwanted\n%s", got, events)
	}
}

func (b *bench) status() appsv1.StatefulSetStatus {
	b.t.Helper()
	set := &appsv1.StatefulSet{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, set); err != nil {
		b.t.Fatal(err)
	}
	return set.Status
}

// bubble runs a test in a bubble of time.
func bubble(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

func refused(what string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: what}, "it", errors.New("exceeded quota"))
}

// SET-024, SET-074, SET-113: the revision comes before the claim, and the claim before the Pod; users are told of
// both. The next pass waits for the cache, and the one after it has nothing to do.
func TestFirstPass(t *testing.T) {
	t.Run("", bubble(func(t *testing.T) {
		in := input(newSet(claimed, replicas(1)), "", "")
		in.Revisions = nil
		in.Set.Status = appsv1.StatefulSetStatus{}
		b := newBench(t, in)
		b.expect("create "+revision(1).Name+", create www-web-0, create web-0",
			"Normal SuccessfulCreate create Claim www-web-0 Pod web-0 in StatefulSet web success\n"+
				"Normal SuccessfulCreate create Pod web-0 in StatefulSet web successful")
		if got := figuresOf(b.status()); got != "1 0 0 1 1 1-1" {
			t.Error(got)
		}
		if result, err := b.reconcile(); err != nil || result.RequeueAfter != time.Second || len(b.writes) != 3 {
			t.Errorf("while the cache is behind: %+v, %v, %v", result, err, b.writes)
		}
		b.catchUp()
		b.expect("", "")
	}))
}

// SET-113: a claim that is refused keeps its Pod from being made, and is told; Pods beside it come.
func TestClaimIsRefused(t *testing.T) {
	t.Run("", bubble(func(t *testing.T) {
		b := newBench(t, input(newSet(claimed, parallel, replicas(2)), "", ""))
		b.refusals["create www-web-0"] = refused("persistentvolumeclaims")
		if _, err := b.reconcile(); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
		b.expectWritten("create www-web-0, create www-web-1, create web-1",
			`Warning FailedCreate create Claim www-web-0 for Pod web-0 in StatefulSet web failed error: `+
				`persistentvolumeclaims "it" is forbidden: exceeded quota`+"\n"+
				"Normal SuccessfulCreate create Claim www-web-1 Pod web-1 in StatefulSet web success\n"+
				"Normal SuccessfulCreate create Pod web-1 in StatefulSet web successful")
	}))
}

// DEP-157: where Pods are refused, a set of the largest size makes no more claims than Pods that it tries, looks up
// no more of them than there are, and the claims of Pods that are not its first are found.
func TestTheLargestSetIsRefused(t *testing.T) {
	t.Run("", bubble(func(t *testing.T) {
		b := newBench(t, input(newSet(claimed, parallel, replicas(math.MaxInt32), retain("Delete", "Retain")), "0r1",
			"www-web-0@set www-web-2147483646 www-web-x www-webs-1"))
		b.refusals["create web-1"] = refused("pods")
		if in := b.controller.observe(newSet(claimed, replicas(math.MaxInt32))); len(in.Claims) != 3 {
			t.Errorf("%d claims are looked at", len(in.Claims))
		}
		if _, err := b.reconcile(); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
		b.expectWritten("update www-web-2147483646, create www-web-1, create web-1",
			"Normal SuccessfulCreate create Claim www-web-1 Pod web-1 in StatefulSet web success\n"+
				`Warning FailedCreate create Pod web-1 in StatefulSet web failed error: `+
				`pods "it" is forbidden: exceeded quota`)
	}))
}

// A claim that exists and that the cache does not show is left as it is; its Pod waits for the cache.
func TestClaimExists(t *testing.T) {
	t.Run("", bubble(func(t *testing.T) {
		b := newBench(t, input(newSet(claimed, replicas(1)), "", "www-web-0"))
		if err := b.claims.Replace(nil, "1"); err != nil {
			t.Fatal(err)
		}
		b.expect("create www-web-0", "")
		b.catchUp()
		b.expect("create web-0", "Normal SuccessfulCreate create Pod web-0 in StatefulSet web successful")
	}))
}

// SET-113: a Pod that is refused is told, and the status is what is there.
func TestPodIsRefused(t *testing.T) {
	t.Run("", bubble(func(t *testing.T) {
		b := newBench(t, input(newSet(), "0r1", ""))
		b.refusals["create web-1"] = refused("pods")
		if _, err := b.reconcile(); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
		b.expectWritten("create web-1", `Warning FailedCreate create Pod web-1 in StatefulSet web failed error: `+
			`pods "it" is forbidden: exceeded quota`)
		if got := figuresOf(b.status()); got != "1 1 1 1 1 1-1" {
			t.Error(got)
		}
	}))
}

// SET-113: users are told of every deletion, and of what was in its way.
func TestDeletions(t *testing.T) {
	deleted := func(name string) string {
		return "Normal SuccessfulDelete delete Pod " + name + " in StatefulSet web successful"
	}
	for _, row := range []struct {
		name         string
		edits        []edit
		pods         string
		writes, says string
	}{
		{"SET-058 scaled down", []edit{replicas(1)}, "0r1 1r1", "delete web-1", deleted("web-1")},
		{"SET-075 outdated", []edit{updated(2)}, "0r1 1r1 2r1", "delete web-2", deleted("web-2")},
		{"SET-065 failed", nil, "0r1 1f1 2r1", "delete web-1",
			"Warning RecreatingFailedPod StatefulSet default/web is recreating failed Pod web-1\n" + deleted("web-1")},
		{"SET-065 succeeded", nil, "0r1 1s1 2r1", "delete web-1",
			"Normal RecreatingTerminatedPod StatefulSet default/web is recreating terminated Pod web-1\n" +
				deleted("web-1")},
		{"never ready, as long as it is unchanged", []edit{updated(3), recovering}, "0r1 1r1 2n2",
			"delete web-2 at 1",
			"Normal ReplacingNeverReadyPod Pod web-2 of an outdated revision never was ready and is " +
				"replaced, as the annotation keelson.dev/replace-never-ready of StatefulSet web asks\n" +
				deleted("web-2")},
	} {
		t.Run(row.name, bubble(func(t *testing.T) {
			newBench(t, input(newSet(row.edits...), row.pods, "")).expect(row.writes, row.says)
		}))
	}
	t.Run("refused", bubble(func(t *testing.T) {
		b := newBench(t, input(newSet(replicas(1)), "0r1 1r1", ""))
		b.refusals["delete web-1"] = refused("pods")
		if _, err := b.reconcile(); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
		b.expectWritten("delete web-1", `Warning FailedDelete delete Pod web-1 in StatefulSet web failed error: `+
			`pods "it" is forbidden: exceeded quota`)
	}))
	t.Run("ready by now", bubble(func(t *testing.T) {
		b := newBench(t, input(newSet(updated(3), recovering), "0r1 1r1 2n2", ""))
		b.refusals["delete web-2 at 1"] = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-2", nil)
		b.expect("delete web-2 at 1", "")
	}))
}

// SET-104, SET-105: a claim gets its owner before its Pod is deleted, and no Pod is deleted when that fails.
func TestOwnersComeFirst(t *testing.T) {
	t.Run("", bubble(func(t *testing.T) {
		in := input(newSet(claimed, replicas(1), retain("Retain", "Delete")), "0r1 1r1", "www-web-0 www-web-1")
		b := newBench(t, in)
		b.refusals["update www-web-1"] = refused("persistentvolumeclaims")
		if _, err := b.reconcile(); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
		b.expectWritten("update www-web-1", "")
		b.refusals = nil
		b.expect("update www-web-1, delete web-1",
			"Normal SuccessfulDelete delete Pod web-1 in StatefulSet web successful")
	}))
}

// Nothing is deleted on the word of a cache that shows an older spec, or a set that is gone.
func TestSpecIsConfirmed(t *testing.T) {
	for name, change := range map[string]func(*bench, *appsv1.StatefulSet){
		"another spec": func(b *bench, set *appsv1.StatefulSet) {
			set.Generation++
			if err := b.api.Update(b.t.Context(), set); err != nil {
				b.t.Fatal(err)
			}
		},
		"gone": func(b *bench, set *appsv1.StatefulSet) {
			if err := b.api.Delete(b.t.Context(), set); err != nil {
				b.t.Fatal(err)
			}
		},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			b := newBench(t, input(newSet(replicas(1)), "0r1 1r1", ""))
			cached := &appsv1.StatefulSet{}
			if err := b.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, cached); err != nil {
				t.Fatal(err)
			}
			b.controller.client = interceptor.NewClient(b.api, interceptor.Funcs{Get: func(_ context.Context,
				_ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
				cached.DeepCopyInto(o.(*appsv1.StatefulSet))
				return nil
			}})
			change(b, cached.DeepCopy())
			b.writes = nil
			if result, err := b.reconcile(); err != nil || result.RequeueAfter != time.Second {
				t.Errorf("%+v, %v", result, err)
			}
			if slices.Contains(b.writes, "delete web-1") {
				t.Errorf("wrote %v", b.writes)
			}
		}))
	}
}

// SET-003, SET-066, SET-070: whoever has the name of a Pod, no second one is made. The server is asked whose it is.
func TestNameTaken(t *testing.T) {
	const says = "Warning FailedCreate create Pod web-0 in StatefulSet web failed error: a Pod of that name exists " +
		"and is not the StatefulSet's"
	taken := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "web-0")
	for _, row := range []struct {
		name         string
		change       func(*corev1.Pod)
		writes, says string
		fails        bool
	}{
		{"its own", func(*corev1.Pod) {}, "create web-0", "", false},
		{"of a former set, and going", func(p *corev1.Pod) {
			p.OwnerReferences[0].UID, p.DeletionTimestamp = "former", &metav1.Time{Time: now}
		}, "create web-0", "", false},
		{"nobody's", func(p *corev1.Pod) { p.OwnerReferences = nil }, "create web-0, patch web-0", "", false},
		{"of a former set", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "former" }, "create web-0", says, true},
		{"nobody's with other labels", func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, nil }, "create web-0",
			says, true},
	} {
		t.Run(row.name, bubble(func(t *testing.T) {
			b := newBench(t, input(newSet(), "", ""))
			existing := podOf("0p1")
			row.change(existing)
			b.refusals["create web-0"] = taken
			// Into the store alone: the informer does not hear of it.
			b.pods.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, existing, nil
			})
			b.pods.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				b.writes = append(b.writes, "patch web-0")
				return true, existing, nil
			})
			result, err := b.reconcile()
			if (err != nil) != row.fails || err == nil && result.RequeueAfter != time.Second {
				t.Errorf("%+v, %v", result, err)
			}
			b.expectWritten(row.writes, row.says)
		}))
	}
}

// SET-017: a revision's name that another object has is a collision; the next pass takes another.
func TestCollision(t *testing.T) {
	t.Run("", bubble(func(t *testing.T) {
		in := input(newSet(replicas(1)), "", "")
		in.Revisions[0].OwnerReferences[0].UID = "another"
		b := newBench(t, in)
		b.expect("create "+revision(1).Name, "")
		if count := b.status().CollisionCount; count == nil || *count != 1 {
			t.Fatalf("collisions %v", count)
		}
		b.catchUp()
		b.writes = nil
		if _, err := b.reconcile(); err != nil || len(b.writes) != 2 || b.writes[0] == "create "+revision(1).Name {
			t.Errorf("%v, wrote %v", err, b.writes)
		}
	}))
}

// SET-040: the labels that say who a Pod is are put back.
func TestRelabels(t *testing.T) {
	t.Run("", bubble(func(t *testing.T) {
		in := input(newSet(replicas(1)), "0r1", "")
		delete(in.Pods[0].Labels, "statefulset.kubernetes.io/pod-name")
		b := newBench(t, in)
		b.expect("patch web-0", "")
		b.catchUp()
		b.expect("", "")
	}))
}
