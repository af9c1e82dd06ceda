package wake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func forbidden(message string) error {
	return fmt.Errorf("creating Pods: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a",
		errors.New(message)))
}

var exceeded = forbidden("exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3")

// bench is a controller whose passes end as the test says.
type bench struct {
	*refused
	queue Queue
	ends  map[string]error
}

func newBench(t *testing.T) *bench {
	b := &bench{ends: map[string]error{}}
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(b.queue.ShutDown)
	b.refused = newRefused(reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, b.ends[r.String()]
	}))
	b.start(b.queue)
	return b
}

func (b *bench) pass(t *testing.T, request reconcile.Request, end error) {
	t.Helper()
	b.ends[request.String()] = end
	if _, err := b.Reconcile(t.Context(), request); !errors.Is(err, end) {
		t.Errorf("%s: %v", request, err)
	}
}

// woken returns who is woken up within the time, sorted.
func (b *bench) woken(within time.Duration) []string {
	time.Sleep(within)
	synctest.Wait()
	var names []string
	for b.queue.Len() > 0 {
		request, _ := b.queue.Get()
		names = append(names, request.String())
		b.queue.Done(request)
	}
	slices.Sort(names)
	return names
}

func (b *bench) change(t *testing.T, before, after *corev1.ResourceQuota) {
	b.onQuota().UpdateFunc(t.Context(), event.TypedUpdateEvent[*corev1.ResourceQuota]{ObjectOld: before,
		ObjectNew: after}, b.queue)
}

// quota is one of Pods; less than none used means that it is not known.
func quota(namespace string, hard, used int64) *corev1.ResourceQuota {
	amount := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{"pods": *resource.NewQuantity(n, resource.DecimalSI)}
	}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
		Status: corev1.ResourceQuotaStatus{Hard: amount(hard)}}
	if used >= 0 {
		q.Status.Used = amount(used)
	}
	return q
}

// Who was refused by a quota is woken up when it may let in more, and nobody else is.
func TestRefusedWakes(t *testing.T) {
	unbounded := quota("ns", 3, 3)
	unbounded.Status.Hard = nil
	for name, row := range map[string]struct {
		before, after *corev1.ResourceQuota
		want          bool
	}{
		"it grows":                    {quota("ns", 3, 3), quota("ns", 4, 3), true},
		"less is used":                {quota("ns", 3, 3), quota("ns", 3, 2), true},
		"its use becomes known":       {quota("ns", 3, -1), quota("ns", 3, 0), true},
		"it bounds that no more":      {quota("ns", 3, 3), unbounded, true},
		"it is gone":                  {quota("ns", 3, 3), nil, true},
		"more is used":                {quota("ns", 3, 2), quota("ns", 3, 3), false},
		"it shrinks":                  {quota("ns", 3, 3), quota("ns", 2, 3), false},
		"nothing changes":             {quota("ns", 3, 3), quota("ns", 3, 3), false},
		"another namespace's grows":   {quota("other", 3, 3), quota("other", 4, 3), false},
		"another namespace's is gone": {quota("other", 3, 3), nil, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.pass(t, Request("ns", "held"), exceeded)
			b.pass(t, Request("", "ns"), forbidden("status unknown for quota: small, resources: pods"))
			b.pass(t, Request("ns", "broken"), forbidden("not allowed by policy"))
			b.pass(t, Request("ns", "fine"), nil)
			if row.after == nil {
				b.onQuota().DeleteFunc(t.Context(), event.TypedDeleteEvent[*corev1.ResourceQuota]{Object: row.before},
					b.queue)
			} else {
				b.change(t, row.before, row.after)
			}
			var want []string
			if row.want {
				want = []string{"/ns", "ns/held"}
			}
			if got := b.woken(time.Second); !slices.Equal(got, want) {
				t.Errorf("%s: wakes %q, want %q", name, got, want)
			}
			b.queue.ShutDown()
		})
	}
}

// However many wait, one change wakes up eight, those that have waited for the longest; each that is let in wakes up
// the next, and one that is refused again waits behind the others.
func TestRefusedWakesByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		name := func(i int) reconcile.Request { return Request("ns", fmt.Sprintf("held-%02d", i)) }
		for i := range 20 {
			b.pass(t, name(i), exceeded)
		}
		b.change(t, quota("ns", 3, 3), quota("ns", 4, 3))
		woken := b.woken(time.Second)
		if len(woken) != 8 || woken[0] != "ns/held-00" || woken[7] != "ns/held-07" {
			t.Fatalf("wakes %q", woken)
		}
		b.pass(t, name(0), nil)
		if got := b.woken(time.Second); !slices.Equal(got, []string{"ns/held-01"}) {
			t.Errorf("one that is let in wakes %q", got)
		}
		for i := 1; i < 8; i++ {
			b.pass(t, name(i), exceeded)
		}
		b.change(t, quota("ns", 4, 4), quota("ns", 5, 4))
		if got := b.woken(time.Second); len(got) != 8 || got[0] != "ns/held-08" {
			t.Errorf("the next change wakes %q", got)
		}
		for i := range 20 {
			b.pass(t, name(i), nil)
		}
		if b.woken(time.Second); len(b.waits) > 0 {
			t.Errorf("%v are remembered", b.waits)
		}
		b.change(t, quota("ns", 5, 4), quota("ns", 6, 4))
		if got := b.woken(time.Second); len(got) > 0 {
			t.Errorf("nobody waits, and it wakes %q", got)
		}
		b.queue.ShutDown()
	})
}
