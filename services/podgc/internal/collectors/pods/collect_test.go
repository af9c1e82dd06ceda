package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"keelson.dev/services/podgc/internal/nodepods"
)

func disrupted(reason string) podOption {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason,
		})
	}
}

// bench is a collector over an API in memory that notes every write in order.
type bench struct {
	collector *collector
	// store is the API itself, unwatched.
	store  client.WithWatch
	writes []string
	// patched is how the Pod looked between the writes.
	patched *corev1.Pod
	// unpatchable is the server's answer to a patch of a status.
	unpatchable error
}

func newBench(objects ...client.Object) *bench {
	for _, object := range objects {
		object.SetUID(types.UID("uid-" + object.GetName()))
	}
	store := fake.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(&corev1.Pod{}).Build()
	b := &bench{store: store}
	recording := interceptor.NewClient(store, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.DeleteOption) error {
			o := (&client.DeleteOptions{}).ApplyOptions(options)
			b.writes = append(b.writes, fmt.Sprintf("delete %s within %d s", *o.Preconditions.UID,
				*o.GracePeriodSeconds))
			return c.Delete(ctx, object, options...)
		},
		Update: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.UpdateOption) error {
			b.writes = append(b.writes, "update "+object.GetName())
			return nil
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, subresource string, object, _ client.Object,
			_ ...client.SubResourceCreateOption) error {
			b.writes = append(b.writes, fmt.Sprintf("create %s of %s", subresource, object.GetUID()))
			return nil
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object,
			patch client.Patch, options ...client.SubResourcePatchOption) error {
			b.writes = append(b.writes, fmt.Sprintf("patch %s of %s", subresource, object.GetUID()))
			if b.unpatchable != nil {
				return b.unpatchable
			}
			err := c.SubResource(subresource).Patch(ctx, object, patch, options...)
			b.patched = object.(*corev1.Pod).DeepCopy()
			return err
		},
	})
	b.collector = &collector{client: recording, live: recording, log: zap.NewNop(), pods: newIndex()}
	var nodes nodepods.Index
	b.collector.elsewhere = nodes.Elsewhere
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			b.collector.pods.put(pod)
			nodes.Replace(nil, pod)
		}
	}
	return b
}

// Why a Pod goes is written before it goes, and one whose status cannot be written stays. No budget is asked for an
// orphan: there is no eviction. POD-183 SAF-021 SAF-069 SAF-165
func TestCollect(t *testing.T) {
	const patch, remove = "patch status of uid-a", "delete uid-a within 0 s"
	const condition = "DisruptionTarget=True DeletionByPodGC: PodGC: node no longer exists"
	disruption := reasons[0].disruption
	orphaned := Collection{Reason: Orphaned, MarkFailed: true, Disruption: disruption}
	refused := errors.New("refused")
	tests := map[string]struct {
		pod         *corev1.Pod
		collection  Collection
		unpatchable error
		writes      []string
		status      string
		err         error
	}{
		"POD-079 POD-183 SAF-069 SAF-165 an orphan": {
			pod: pod("a", on("gone")), collection: orphaned, writes: []string{patch, remove},
			status: "Failed " + condition,
		},
		"SAF-069 an orphan that was about to be disrupted otherwise": {
			pod: pod("a", on("gone"), disrupted("EvictionByEvictionAPI")), collection: orphaned,
			writes: []string{patch, remove}, status: "Failed " + condition,
		},
		"SAF-165 a finished orphan": {
			pod: pod("a", on("gone"), phase(corev1.PodSucceeded)), collection: Collection{Reason: Orphaned,
				Disruption: disruption},
			writes: []string{patch, remove}, status: "Succeeded " + condition,
		},
		"SAF-165 an orphan whose status cannot be written": {
			pod: pod("a", on("gone")), collection: orphaned, unpatchable: refused, writes: []string{patch},
			err: refused,
		},
		"SAF-165 an orphan that has gone meanwhile": {
			pod: pod("a", on("gone")), collection: orphaned, writes: []string{patch},
			unpatchable: apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a"),
		},
		"never scheduled": {
			pod: pod("a"), collection: Collection{Reason: Unscheduled, MarkFailed: true},
			writes: []string{patch, remove}, status: "Failed",
		},
		"one of too many finished": {
			pod: pod("a", phase(corev1.PodFailed)), collection: Collection{Reason: Terminated},
			writes: []string{remove},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(test.pod)
			b.unpatchable = test.unpatchable
			if err := b.collector.client.Get(t.Context(), client.ObjectKeyFromObject(test.pod), test.pod); err != nil {
				t.Fatal(err)
			}
			test.collection.Pod = test.pod
			counted := deletions.WithLabelValues(string(test.collection.Reason))
			before, deleted := testutil.ToFloat64(counted), 0.0
			if slices.Contains(test.writes, remove) {
				deleted = 1
			}
			if err := b.collector.collect(t.Context(), test.collection); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if !slices.Equal(b.writes, test.writes) {
				t.Errorf("writes %q, want %q", b.writes, test.writes)
			}
			if more := testutil.ToFloat64(counted) - before; more != deleted {
				t.Errorf("%v deletions are counted, want %v", more, deleted)
			}
			if got := statusText(b.patched); got != test.status {
				t.Errorf("the last status says %q, want %q", got, test.status)
			}
		})
	}
}

// SAF-069: since when a Pod is about to be disrupted stays as it was when it is collected again, or for another
// reason.
func TestTheTimeOfADisruptionStays(t *testing.T) {
	for status, moves := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: false,
		corev1.ConditionFalse: true} {
		p := pod("a", on("gone"), disrupted("EvictionByEvictionAPI"))
		p.Status.Conditions[0].Status, p.Status.Conditions[0].LastTransitionTime = status, metav1.NewTime(now)
		markCollected(&p.Status, Collection{Reason: Orphaned, Disruption: reasons[0].disruption}, now.Add(time.Minute))
		since := now
		if moves {
			since = now.Add(time.Minute)
		}
		if got := p.Status.Conditions[0]; got.Status != corev1.ConditionTrue || got.Reason != "DeletionByPodGC" ||
			!got.LastTransitionTime.Time.Equal(since) {
			t.Errorf("after %s: %+v", status, got)
		}
	}
}

// statusText is a Pod's phase and its conditions.
func statusText(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	parts := []string{string(p.Status.Phase)}
	for _, c := range p.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(parts, " ")
}

// A node that is cut off keeps its Pods, however long; deleting its Node object says that its processes are gone, and
// nothing less does: a cache that lacks it is not believed, nor an error.
//
// SAF-147 SAF-160 SAF-162 SAF-164 SAF-173
func TestOnlyADeletedNodeReleasesItsPods(t *testing.T) {
	lost := node("lost", corev1.ConditionUnknown, corev1.TaintNodeUnreachable)
	// The finalizer is there because the API in memory takes no Pod that is being deleted without one.
	b := newBench(lost, pod("a", on("lost"), terminating,
		func(p *corev1.Pod) { p.Finalizers = []string{"test.keelson.dev/hold"} }))
	whole := b.collector.client
	unaware := interceptor.NewClient(whole.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if _, ofNodes := list.(*corev1.NodeList); ofNodes {
				return nil
			}
			return c.List(ctx, list, options...)
		},
	})
	silent := interceptor.NewClient(b.store, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no answer")
		},
	})
	at := now
	for _, step := range []struct {
		name         string
		cached       client.Client
		live         client.Reader
		deleted      bool
		wantErr      bool
		wantToBeGone bool
	}{
		{name: "the node is cut off", cached: whole, live: whole},
		{name: "only the cache lacks the node", cached: unaware, live: whole},
		{name: "the cache lacks the node and the server does not answer", cached: unaware, live: silent, wantErr: true},
		{name: "the Node was deleted", cached: whole, live: whole, deleted: true, wantToBeGone: true},
	} {
		if step.deleted {
			if err := b.store.Delete(t.Context(), lost); err != nil {
				t.Fatal(err)
			}
		}
		b.collector.client, b.collector.live, b.collector.missedSince = step.cached, step.live, nil
		if err := b.collector.sweep(t.Context(), at); err != nil || len(b.writes) != 0 {
			t.Fatalf("%s, the first sweep: error %v, writes %q", step.name, err, b.writes)
		}
		at = at.Add(40 * time.Second)
		if err := b.collector.sweep(t.Context(), at); (err != nil) != step.wantErr {
			t.Fatalf("%s: error %v", step.name, err)
		}
		var want []string
		if step.wantToBeGone {
			want = []string{"patch status of uid-a", "delete uid-a within 0 s"}
		}
		if !slices.Equal(b.writes, want) {
			t.Fatalf("%s: writes %q, want %q", step.name, b.writes, want)
		}
	}
}
