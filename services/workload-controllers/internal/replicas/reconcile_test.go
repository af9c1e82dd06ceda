package replicas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

	"keelson.dev/kit/events/eventstest"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podfeed/podfeedtest"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// bench is a Controller over an API in memory. Pods come through an informer; the ReplicaSets' cache is always up to
// date.
type bench struct {
	t          *testing.T
	sets       client.WithWatch
	pods       *clientsetfake.Clientset
	events     eventstest.Recorded
	controller *Controller[*appsv1.ReplicaSet]
	refusal    error
}

// replicaSets is the kind of the tests.
var replicaSets = &Kind[*appsv1.ReplicaSet]{
	Controller: "replicaset", GVK: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Resource: "replicasets",
	New: func() *appsv1.ReplicaSet { return &appsv1.ReplicaSet{} },
	Set: func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { return set },
	WriteStatus: func(ctx context.Context, w *write.Writer, set *appsv1.ReplicaSet,
		status appsv1.ReplicaSetStatus) (bool, error) {
		return write.Status(ctx, w, set, status, func(set *appsv1.ReplicaSet) *appsv1.ReplicaSetStatus {
			return &set.Status
		})
	},
}

func newBench(t *testing.T, set *appsv1.ReplicaSet, pods ...runtime.Object) *bench {
	b := &bench{t: t, pods: clientsetfake.NewClientset(pods...)}
	b.sets = fake.NewClientBuilder().WithObjects(set).WithStatusSubresource(set).Build()
	serial := len(pods)
	b.pods.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		serial++
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Name, pod.UID, pod.ResourceVersion = fmt.Sprint(pod.GenerateName, serial),
			types.UID(fmt.Sprint("pod-", serial)), fmt.Sprint(1000+serial)
		return b.refusal != nil, nil, b.refusal
	})
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	if err := store.Replace(nil, "1000000"); err != nil {
		t.Fatal(err)
	}
	index, err := ownerindex.Of[*appsv1.ReplicaSet](store)
	if err != nil {
		t.Fatal(err)
	}
	feed := podfeed.New()
	podfeedtest.Connect(t, feed, b.pods)
	pending := gate.New()
	b.controller = &Controller[*appsv1.ReplicaSet]{
		kind: replicaSets, client: b.sets, live: b.sets, sets: index, pods: feed.Index, gate: pending,
		writer: &write.Writer{Client: b.sets, Kind: "replicaset", Gate: pending, Store: store}, recorder: &b.events,
		now: time.Now,
		ops: &podops.Operator{Client: b.pods.CoreV1(), FieldManager: "replicaset", Gate: pending, Feed: feed,
			Log: zap.NewNop()},
		written: map[types.UID]time.Time{},
	}
	return b
}

// settle reconciles as often as the results ask for, in the time of the test's bubble.
func (b *bench) settle() {
	b.t.Helper()
	for range 10 {
		result, err := b.controller.steps().Reconcile(b.t.Context(), wake.Request("default", "frontend"))
		if err != nil {
			b.t.Fatal(err)
		}
		synctest.Wait()
		<-time.After(result.RequeueAfter)
	}
}

func (b *bench) podNames() []string {
	b.t.Helper()
	list, err := b.pods.CoreV1().Pods("default").List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, pod := range list.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.UID == "rs-uid" {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (b *bench) status() appsv1.ReplicaSetStatus {
	b.t.Helper()
	set := &appsv1.ReplicaSet{}
	if err := b.sets.Get(b.t.Context(), client.ObjectKey{Namespace: "default", Name: "frontend"}, set); err != nil {
		b.t.Fatal(err)
	}
	return set.Status
}

func bare(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
		ResourceVersion: "1", Labels: map[string]string{"tier": "frontend"}}}
}

// DEP-146, DEP-151, DEP-161: Pods are made, told of, and those in excess ended.
func TestPodsAreMadeAndEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet(3))
		b.settle()
		want := []string{"frontend-1", "frontend-2", "frontend-3"}
		if got := b.podNames(); !slices.Equal(got, want) {
			t.Fatalf("Pods %v, want %v", got, want)
		}
		slices.Sort(b.events)
		if !slices.Equal(b.events, eventstest.Recorded{"Normal SuccessfulCreate Created pod: frontend-1",
			"Normal SuccessfulCreate Created pod: frontend-2", "Normal SuccessfulCreate Created pod: frontend-3"}) {
			t.Errorf("events %q", b.events)
		}
		if status := b.status(); status.Replicas != 3 || status.FullyLabeledReplicas != 3 ||
			status.ObservedGeneration != 2 {
			t.Errorf("status %+v", status)
		}
		one := int32(1)
		set := newSet(1)
		if err := b.sets.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		set.Spec.Replicas, b.events = &one, nil
		if err := b.sets.Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		b.settle()
		if got := b.podNames(); len(got) != 1 || len(b.events) != 2 || !strings.HasPrefix(b.events[0],
			"Normal SuccessfulDelete Deleted pod: frontend-") {
			t.Errorf("Pods %v, events %q", got, b.events)
		}
	})
}

// A pass that does not see its own Pods yet would make them again.
func TestOwnPodsAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet(3))
		if _, err := b.controller.steps().Reconcile(t.Context(), wake.Request("default", "frontend")); err != nil {
			t.Fatal(err)
		}
		b.controller.gate.Await("rs-uid", "unseen", func() bool { return false })
		result, err := b.controller.steps().Reconcile(t.Context(), wake.Request("default", "frontend"))
		if err != nil || result.RequeueAfter != time.Second || len(b.podNames()) != 3 {
			t.Errorf("result %+v, %v, Pods %v", result, err, b.podNames())
		}
	})
}

// DEP-158, DEP-162: bare Pods that match are acquired and count.
func TestBarePodsAreAcquired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet(3), bare("pod1"), bare("pod2"))
		b.settle()
		if got, want := b.podNames(), []string{"frontend-3", "pod1", "pod2"}; !slices.Equal(got, want) {
			t.Errorf("Pods %v, want %v", got, want)
		}
	})
}

// DEP-175: a Pod whose labels stop matching is let go and replaced.
func TestRelabelledPodsAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet(2))
		b.settle()
		patch := []byte(`{"metadata":{"labels":{"tier":"debug"},"resourceVersion":"2000"}}`)
		if _, err := b.pods.CoreV1().Pods("default").Patch(t.Context(), "frontend-1", types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.settle()
		if got, want := b.podNames(), []string{"frontend-2", "frontend-3"}; !slices.Equal(got, want) {
			t.Errorf("Pods %v, want %v", got, want)
		}
		released, err := b.pods.CoreV1().Pods("default").Get(t.Context(), "frontend-1", metav1.GetOptions{})
		if err != nil || len(released.OwnerReferences) != 0 {
			t.Errorf("released %+v, %v", released, err)
		}
	})
}

// DEP-134, DEP-135, DEP-137, SCH-016: a refusal is told in condition and event and tried again; success ends it.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSet(3))
		b.refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "frontend-",
			errors.New("exceeded quota: object-counts"))
		if _, err := b.controller.steps().Reconcile(t.Context(),
			wake.Request("default", "frontend")); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
		const message = `Error creating: pods "frontend-" is forbidden: exceeded quota: object-counts`
		conditions := b.status().Conditions
		if len(conditions) != 1 || conditions[0].Reason != "FailedCreate" || conditions[0].Message != message {
			t.Errorf("conditions %+v", conditions)
		}
		if !slices.Equal(b.events, eventstest.Recorded{"Warning FailedCreate " + message}) {
			t.Errorf("events %q", b.events)
		}
		b.refusal = nil
		b.settle()
		if status := b.status(); len(status.Conditions) != 0 || status.Replicas != 3 {
			t.Errorf("status %+v", status)
		}
	})
}

// DEP-157: Pods that were refused are seen, and replaced when it is time.
func TestRefusedPodsAreReplacedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yes, refused := true, bare("refused")
		refused.CreationTimestamp, refused.Status.Phase = metav1.Now(), corev1.PodFailed
		refused.OwnerReferences = []metav1.OwnerReference{{UID: "rs-uid", Kind: "ReplicaSet", Name: "frontend",
			Controller: &yes}}
		b := newBench(t, newSet(2), refused)
		result, err := b.controller.steps().Reconcile(t.Context(), wake.Request("default", "frontend"))
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 2*time.Second || len(b.podNames()) != 1 {
			t.Fatalf("result %+v, %v, Pods %v", result, err, b.podNames())
		}
		<-time.After(result.RequeueAfter)
		if _, err := b.controller.steps().Reconcile(t.Context(), wake.Request("default", "frontend")); err != nil ||
			len(b.podNames()) != 2 {
			t.Errorf("%v, Pods %v, want one more", err, b.podNames())
		}
	})
}
