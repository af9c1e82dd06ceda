package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
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
	writes []string
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{}
	builder := fake.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(&corev1.Pod{})
	b.store = builder.Build()
	noting := interceptor.NewClient(b.store, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.DeleteOption) error {
			o := (&client.DeleteOptions{}).ApplyOptions(options)
			b.writes = append(b.writes, fmt.Sprintf("delete %s, grace %v", *o.Preconditions.UID, o.GracePeriodSeconds))
			if live := b.pod(t, object.GetName()); *o.Preconditions.ResourceVersion != live.ResourceVersion {
				t.Errorf("version %s is deleted, of %s", *o.Preconditions.ResourceVersion, live.ResourceVersion)
			}
			return c.Delete(ctx, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object,
			patch client.Patch, options ...client.SubResourcePatchOption) error {
			b.writes = append(b.writes, fmt.Sprintf("patch %s of %s", subresource, object.GetUID()))
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	})
	b.collector = &collector{cached: b.store, live: b.store, writer: noting, log: zap.NewNop(), pods: b.on,
		now: func() time.Time { return now }, tainted: map[string]memory{},
		record: func(about runtime.Object, e events.Event) {
			b.writes = append(b.writes, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		}}
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

func (b *bench) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := b.store.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// pass makes one pass over the Node and returns what was written and when to come again.
func (b *bench) pass(t *testing.T) (writes []string, again time.Duration, err error) {
	t.Helper()
	b.writes = nil
	result, err := b.steps().Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "n"}})
	return b.writes, result.RequeueAfter, err
}

// SAF-065 SAF-067 SAF-179: the reason is there before the deletion, which is graceful, and users are told.
func TestEviction(t *testing.T) {
	b := newBench(t, newNode("k"), newPod("a"), newPod("b", tolerating("k", 7)), newPod("c", func(p *corev1.Pod) {
		p.Spec.NodeName = "other"
	}))
	writes, again, err := b.pass(t)
	want := []string{"patch status of uid-a",
		"Normal TaintManagerEviction: Marking for deletion Pod default/a", "delete uid-a, grace <nil>"}
	if err != nil || again != 7*time.Second || !slices.Equal(writes, want) {
		t.Fatalf("%q, again in %v, error %v; want %q", writes, again, err, want)
	}
	b.now = func() time.Time { return now.Add(7 * time.Second) }
	want = []string{"patch status of uid-b",
		"Normal TaintManagerEviction: Marking for deletion Pod default/b", "delete uid-b, grace <nil>"}
	if writes, again, err := b.pass(t); err != nil || again != 0 || !slices.Equal(writes, want) {
		t.Fatalf("%q, again in %v, error %v; want %q", writes, again, err, want)
	}
	if writes, _, err := b.pass(t); err != nil || len(writes) > 0 {
		t.Errorf("a further pass: %q, error %v", writes, err)
	}
}

// A taint that is removed in time spares the waiting Pods, says so once, and leaves nothing in memory.
func TestATaintThatGoes(t *testing.T) {
	node := newNode("k")
	b := newBench(t, node, newPod("a", tolerating("k", 7)))
	if writes, again, err := b.pass(t); err != nil || again != 7*time.Second || len(writes) > 0 {
		t.Fatalf("%q, again in %v, error %v", writes, again, err)
	}
	b.now = func() time.Time { return now.Add(8 * time.Second) }
	node.Spec.Taints = nil
	if err := b.store.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	want := []string{"Normal TaintManagerEviction: Cancelling deletion of Pod default/a"}
	if writes, _, err := b.pass(t); err != nil || !slices.Equal(writes, want) {
		t.Fatalf("%q, error %v; want %q", writes, err, want)
	}
	if writes, _, err := b.pass(t); err != nil || len(writes) > 0 || len(b.tainted) > 0 {
		t.Errorf("then %q, error %v; remembered: %v", writes, err, b.tainted)
	}
}

// The cache may show a taint that has gone, or a Node that was replaced: the server is asked before a Pod goes.
func TestASecondLook(t *testing.T) {
	other := newNode("k@-10")
	other.UID = "another"
	for name, live := range map[string]client.Reader{
		"the taint has gone":                 newBench(t, newNode()).store,
		"it is another Node":                 newBench(t, other).store,
		"the Node has gone":                  newBench(t).store,
		"there is time left by the server's": newBench(t, newNode("other")).store,
	} {
		b := newBench(t, newNode("k@-10"), newPod("a", tolerating("k", 5), tolerating("other", 5)))
		b.live = live
		if writes, _, err := b.pass(t); err != nil || len(writes) > 0 {
			t.Errorf("%s: %q, error %v", name, writes, err)
		}
	}
	b := newBench(t, newNode("k"), newPod("a"))
	b.live = interceptor.NewClient(b.store, interceptor.Funcs{Get: func(context.Context, client.WithWatch,
		client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("no answer")
	}})
	if writes, _, err := b.pass(t); err == nil || len(writes) > 0 {
		t.Errorf("without an answer: %q, error %v", writes, err)
	}
}

// SAF-065: a collector that ends between the two writes, or gets no answer to one, leaves a Pod that says why it
// goes, and the next one deletes it without saying it again.
func TestEndingBetweenTheWrites(t *testing.T) {
	const mark, tell, remove = "patch status of uid-a",
		"Normal TaintManagerEviction: Marking for deletion Pod default/a", "delete uid-a, grace <nil>"
	for place, test := range map[string]struct{ first, second []string }{
		"podgc/evicted.status.before": {nil, []string{mark, tell, remove}},
		"podgc/evicted.status.after":  {[]string{mark}, []string{tell, remove}},
		"podgc/evicted.delete.before": {[]string{mark}, []string{tell, remove}},
		"podgc/evicted.delete.after":  {[]string{mark, tell, remove}, nil},
	} {
		t.Run(place, func(t *testing.T) {
			b := newBench(t, newNode("k"), newPod("a"))
			if err := failpoint.Arm(place, "1*error(the end)"); err != nil {
				t.Fatal(err)
			}
			defer failpoint.Disarm(place)
			if writes, _, err := b.pass(t); !errors.Is(err, failpoint.ErrInjected) ||
				!slices.Equal(writes, test.first) {
				t.Fatalf("first %q, error %v; want %q", writes, err, test.first)
			}
			b.collector.tainted = map[string]memory{} // another leader
			if writes, _, err := b.pass(t); err != nil || !slices.Equal(writes, test.second) {
				t.Fatalf("then %q, error %v; want %q", writes, err, test.second)
			}
		})
	}
}

// Between the decision and the deletion the Pod changes: that version was not decided on.
func TestAPodThatChanges(t *testing.T) {
	b := newBench(t, newNode("k"), newPod("a"))
	b.pods = func(node string) []*corev1.Pod {
		pods, changed := b.on(node), b.pod(t, "a")
		metav1.SetMetaDataLabel(&changed.ObjectMeta, "new", "yes")
		if err := b.store.Update(t.Context(), changed); err != nil {
			t.Error(err)
		}
		return pods
	}
	writes, again, err := b.pass(t)
	if err != nil || again == 0 || !slices.Equal(writes, []string{"patch status of uid-a"}) {
		t.Errorf("%q, again in %v, error %v", writes, again, err)
	}
	if p := b.pod(t, "a"); len(p.Status.Conditions) > 0 {
		t.Errorf("the Pod that changed got %+v", p.Status.Conditions)
	}
}
