package nodehealth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events"
	"keelson.dev/kit/failpoint"
)

// bench is a collector over an API in memory that notes every write and every event in order.
type bench struct {
	*collector
	store  client.WithWatch
	at     time.Time
	writes []string
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{at: start}
	builder := fake.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(&corev1.Pod{}, &corev1.Node{})
	b.store = builder.Build()
	noting := interceptor.NewClient(b.store, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			b.writes = append(b.writes, "patch "+object.GetName())
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object,
			patch client.Patch, options ...client.SubResourcePatchOption) error {
			b.writes = append(b.writes, "patch "+subresource+" of "+object.GetName())
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	})
	b.collector = &collector{cached: b.store, live: b.store, writer: noting, log: zap.NewNop(), pods: b.on,
		now: func() time.Time { return b.at }, record: func(_ runtime.Object, e events.Event) {
			b.writes = append(b.writes, e.Reason+": "+e.Message)
		}}
	b.lead(t)
	return b
}

// on returns the Pods that are bound to the node.
func (b *bench) on(node string) []*corev1.Pod {
	var list corev1.PodList
	if err := b.store.List(context.Background(), &list); err != nil {
		panic(err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if list.Items[i].Spec.NodeName == node {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods
}

// lead is a new leader that has already waited for its grace period; nobody was heard in it but the node "other".
func (b *bench) lead(t *testing.T) {
	t.Helper()
	b.fleet = newFleet(DefaultSettings())
	var nodes corev1.NodeList
	if err := b.store.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		b.fleet.take(&nodes.Items[i], b.at)
	}
	for range 8 {
		if err := b.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.at = b.at.Add(10 * time.Second)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: "other"}}
		_ = b.store.Delete(t.Context(), lease.DeepCopy())
		renewed := metav1.NewMicroTime(b.at)
		lease.Spec.RenewTime = &renewed
		if err := b.store.Create(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
}

// pass makes one pass over the Node "n" and returns what was written.
func (b *bench) pass(t *testing.T) (writes []string, again time.Duration, err error) {
	t.Helper()
	b.writes = nil
	result, err := b.steps().Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "n"}})
	return b.writes, result.RequeueAfter, err
}

func servingPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
			Status: corev1.ConditionTrue}}}}
}

func (b *bench) node(t *testing.T) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	if err := b.store.Get(t.Context(), client.ObjectKey{Name: "n"}, node); err != nil {
		t.Fatal(err)
	}
	return node
}

var (
	silencing = []string{"patch status of n", "NodeNotReady: Node n status is now: NodeNotReady"}
	following = []string{"patch status of a", "NodeNotReady: Node is not ready", "patch n"}
)

// SAF-179: what is written about a node that has fallen silent, in which order, and nothing afterwards.
func TestALostNode(t *testing.T) {
	b := newBench(t, newNode("n", ready("True")), newNode("other", ready("True")), servingPod("a"))
	for i, want := range [][]string{silencing, following, nil} {
		if writes, _, err := b.pass(t); err != nil || !slices.Equal(writes, want) {
			t.Fatalf("pass %d: %q, error %v; want %q", i, writes, err, want)
		}
	}
	if got := shortTaints(b.node(t).Spec.Taints); got != "unreachable:NoSchedule unreachable:NoExecute" {
		t.Errorf("taints %q", got)
	}
}

// A collector that ends at any write, or gets no answer to one, leaves what the next leader completes.
func TestEndingAtAWrite(t *testing.T) {
	for _, place := range []string{"podgc/node.status", "podgc/pod.notready", "podgc/node.taint"} {
		for _, moment := range []string{".before", ".after"} {
			t.Run(place+moment, func(t *testing.T) {
				b := newBench(t, newNode("n", ready("True")), newNode("other", ready("True")), servingPod("a"))
				if err := failpoint.Arm(place+moment, "1*error(the end)"); err != nil {
					t.Fatal(err)
				}
				defer failpoint.Disarm(place + moment)
				failed := 0
				for range 4 {
					if _, _, err := b.pass(t); errors.Is(err, failpoint.ErrInjected) {
						failed++
						b.lead(t)
					} else if err != nil {
						t.Fatal(err)
					}
				}
				var pod corev1.Pod
				if err := b.store.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"},
					&pod); err != nil {
					t.Fatal(err)
				}
				if got := shortTaints(b.node(t).Spec.Taints); failed != 1 || pod.Status.Conditions[0].Status !=
					corev1.ConditionFalse || got != "unreachable:NoSchedule unreachable:NoExecute" {
					t.Errorf("after %d ends: taints %q, Pod %+v", failed, got, pod.Status.Conditions)
				}
			})
		}
	}
}

// A node that reports at the moment of a decision is not contradicted: the write names the version it was decided on.
func TestANodeThatReportsMeanwhile(t *testing.T) {
	b := newBench(t, newNode("n", ready("True")), newNode("other", ready("True")), servingPod("a"))
	stale := b.node(t)
	node := b.node(t)
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(b.at)
	if err := b.store.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	b.cached = interceptor.NewClient(b.store, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch,
		_ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
		stale.DeepCopyInto(into.(*corev1.Node))
		return nil
	}})
	writes, again, err := b.pass(t)
	if err != nil || again == 0 || !slices.Equal(writes, []string{"patch status of n"}) ||
		b.node(t).Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("%q, again in %v, error %v, conditions %+v", writes, again, err, b.node(t).Status.Conditions)
	}
}

// One Pod that cannot be written holds up neither the others nor the taints.
func TestAPodThatCannotBeWritten(t *testing.T) {
	b := newBench(t, newNode("n", ready("True")), newNode("other", ready("True")), servingPod("a"), servingPod("b"))
	if _, _, err := b.pass(t); err != nil {
		t.Fatal(err)
	}
	if err := failpoint.Arm("podgc/pod.notready.before", "1*error(refused)"); err != nil {
		t.Fatal(err)
	}
	defer failpoint.Disarm("podgc/pod.notready.before")
	writes, _, err := b.pass(t)
	if want := []string{"patch status of b", "NodeNotReady: Node is not ready", "patch n"}; err == nil ||
		!slices.Equal(writes, want) {
		t.Errorf("%q, error %v; want %q", writes, err, want)
	}
}

// What is gone meanwhile is no error.
func TestWhatIsGone(t *testing.T) {
	b := newBench(t, newNode("n", ready("True")), newNode("other", ready("True")), servingPod("a"))
	whole := b.cached
	for i := range 2 {
		node := b.node(t)
		b.cached = interceptor.NewClient(whole.(client.WithWatch), interceptor.Funcs{Get: func(_ context.Context,
			_ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			node.DeepCopyInto(into.(*corev1.Node))
			return nil
		}})
		if i == 0 {
			if _, _, err := b.pass(t); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := b.store.Delete(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if writes, _, err := b.pass(t); err != nil || strings.Join(writes, "; ") != strings.Join(following, "; ") {
			t.Errorf("%q, error %v", writes, err)
		}
	}
}

// A list that fails counts as no look.
func TestALookThatFails(t *testing.T) {
	b := newBench(t, newNode("n", ready("True")))
	before := fmt.Sprint(b.fleet.watched, b.fleet.lookedAt)
	b.live = interceptor.NewClient(b.store, interceptor.Funcs{List: func(context.Context, client.WithWatch,
		client.ObjectList, ...client.ListOption) error {
		return errors.New("no answer")
	}})
	if err := b.look(t.Context()); err == nil || fmt.Sprint(b.fleet.watched, b.fleet.lookedAt) != before {
		t.Errorf("error %v, watched for %v", err, b.fleet.watched)
	}
}
