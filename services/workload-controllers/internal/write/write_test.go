package write

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/workload-controllers/internal/gate"
)

func newSet(name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-" + "set"}}
}

// newWriter returns a writer over an API with the set "there" and a cache that shows nothing.
func newWriter(funcs interceptor.Funcs) *Writer {
	there := newSet("there")
	return &Writer{
		Client: fake.NewClientBuilder().WithObjects(there).WithStatusSubresource(there).WithInterceptorFuncs(
			funcs).Build(),
		Kind: "replicaset", Gate: gate.New(), Store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
	}
}

func (w *Writer) there(t *testing.T) *appsv1.ReplicaSet {
	t.Helper()
	set := &appsv1.ReplicaSet{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "there"}, set); err != nil {
		t.Fatal(err)
	}
	return set
}

func ofStatus(set *appsv1.ReplicaSet) *appsv1.ReplicaSetStatus { return &set.Status }

// Every write stands between its failpoints and shuts the gate, unless nothing was written.
func TestWrites(t *testing.T) {
	scaled := appsv1.ReplicaSetStatus{Replicas: 3}
	writes := map[string]func(*Writer, *appsv1.ReplicaSet) error{
		"create": func(w *Writer, _ *appsv1.ReplicaSet) error { return w.Create(t.Context(), "owner", newSet("new")) },
		"update": func(w *Writer, set *appsv1.ReplicaSet) error { return w.Update(t.Context(), "owner", set) },
		"patch": func(w *Writer, set *appsv1.ReplicaSet) error {
			return w.Patch(t.Context(), "owner", set, client.MergeFrom(newSet("there")))
		},
		"delete": func(w *Writer, set *appsv1.ReplicaSet) error {
			if err := w.Store.(cache.Indexer).Add(set.DeepCopy()); err != nil {
				return err
			}
			return w.Delete(t.Context(), "owner", set)
		},
		"status": func(w *Writer, set *appsv1.ReplicaSet) error {
			set.UID = "owner"
			_, err := Status(t.Context(), w, set, scaled, ofStatus)
			return err
		},
	}
	for verb, request := range writes {
		t.Run(verb, func(t *testing.T) {
			w := newWriter(interceptor.Funcs{})
			if err := request(w, w.there(t)); err != nil || w.Gate.IsOpen("owner") {
				t.Errorf("error %v, the gate is open: %v", err, w.Gate.IsOpen("owner"))
			}
			for _, when := range []string{"before", "after"} {
				name := "workload-controllers/replicaset." + verb + "." + when
				if err := failpoint.Arm(name, "1*error(test)"); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { failpoint.Disarm(name) })
				w := newWriter(interceptor.Funcs{})
				err := request(w, w.there(t))
				if open := w.Gate.IsOpen("owner"); !errors.Is(err, failpoint.ErrInjected) ||
					open != (when == "before") {
					t.Errorf("ended %s it: error %v, the gate is open: %v", when, err, open)
				}
			}
		})
	}
}

func TestARefusedWriteLeavesTheGateOpen(t *testing.T) {
	refused := errors.New("refused")
	w := newWriter(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
		...client.CreateOption) error {
		return refused
	}})
	if err := w.Create(t.Context(), "owner", newSet("new")); !errors.Is(err, refused) || !w.Gate.IsOpen("owner") {
		t.Errorf("error %v, the gate is open: %v", err, w.Gate.IsOpen("owner"))
	}
	w.Gate, w.Store = nil, nil
	if err := w.Update(t.Context(), "owner", w.there(t)); err != nil {
		t.Errorf("without a gate: %v", err)
	}
	if err := w.Delete(t.Context(), "owner", w.there(t)); err != nil {
		t.Errorf("deleting without a gate: %v", err)
	}
}

func TestStatusIsWrittenWhereItDiffers(t *testing.T) {
	updates := 0
	w := newWriter(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string,
		object client.Object, opts ...client.SubResourceUpdateOption) error {
		updates++
		if object.GetName() == "gone" {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "replicasets"}, "gone")
		}
		return c.SubResource(sub).Update(ctx, object, opts...)
	}})
	for _, step := range []struct {
		name             string
		set              *appsv1.ReplicaSet
		replicas         int32
		written, request bool
	}{
		{"the same", w.there(t), 0, false, false},
		{"another", w.there(t), 3, true, true},
		{"of one that is gone", newSet("gone"), 3, false, true},
	} {
		updates = 0
		before := step.set.DeepCopy()
		written, err := Status(t.Context(), w, step.set, appsv1.ReplicaSetStatus{Replicas: step.replicas}, ofStatus)
		if err != nil || written != step.written || (updates > 0) != step.request ||
			step.set.Status.Replicas != before.Status.Replicas {
			t.Errorf("%s: written %v in %d requests, %v", step.name, written, updates, err)
		}
	}
	if got := w.there(t).Status.Replicas; got != 3 {
		t.Errorf("%d replicas, want 3", got)
	}
}

// The answer to a write is decoded into the object that was sent: it must not reach what the decision shared with the
// cache.
func TestTheAnswerDoesNotReachTheCache(t *testing.T) {
	w := newWriter(interceptor.Funcs{SubResourceUpdate: func(_ context.Context, _ client.Client, _ string,
		object client.Object, _ ...client.SubResourceUpdateOption) error {
		answered := &object.(*appsv1.ReplicaSet).Status
		answered.Conditions[0].Reason, *answered.TerminatingReplicas = "Answered", 9
		return nil
	}})
	cached, one := newSet("there"), int32(1)
	cached.Status = appsv1.ReplicaSetStatus{TerminatingReplicas: &one,
		Conditions: []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Reason: "Cached"}}}
	status := cached.Status
	status.Replicas = 3
	if written, err := Status(t.Context(), w, cached, status, ofStatus); err != nil || !written {
		t.Fatalf("written %t, %v", written, err)
	}
	if cached.Status.Conditions[0].Reason != "Cached" || *cached.Status.TerminatingReplicas != 1 {
		t.Errorf("the cache has %+v", cached.Status)
	}
}
