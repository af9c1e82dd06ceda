package resourcequota

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/quota"
)

func asking(cpu string) item {
	return item{usage: quota.Pod(list("cpu", cpu), nil, false), scopes: quota.Scopes{IsPod: true}}
}

// check compares what a ledger knows about a quota.
func check(t *testing.T, l *Ledger, q *corev1.ResourceQuota, at time.Time, counted,
	released corev1.ResourceList) Input {
	t.Helper()
	in, ok := l.Read(q, at)
	if !ok || !equality.Semantic.DeepEqual(in.Counted, counted) || !equality.Semantic.DeepEqual(in.Released, released) {
		t.Errorf("counted %v and released %v, want %v and %v", in.Counted, in.Released, counted, released)
	}
	return in
}

func TestLedger(t *testing.T) {
	l, q := NewLedger(), newQuota(list("pods", "9", "cpu", "9", "secrets", "9"), nil)
	if l.Keeps("ns") || l.Put("ns", "a", asking("1")) != nil {
		t.Error("it keeps a namespace without quotas")
	}
	l.Open(q, now)
	l.Refill("ns", func(visit func(types.UID, item)) {
		visit("a", asking("1"))
		visit("s", item{usage: quota.Object(quota.Services)})
	})
	check(t, l, q, now, list("pods", "1", "cpu", "1"), corev1.ResourceList{})
	for step, want := range map[string]int{"b": 1, "again": 0, "a Service": 0} {
		of := map[string]item{"b": asking("2"), "again": asking("1"),
			"a Service": {usage: quota.Object(quota.Services)}}
		uid := map[string]types.UID{"b": "b", "again": "a", "a Service": "t"}[step]
		if got := l.Put("ns", uid, of[step]); len(got) != want {
			t.Errorf("%s wakes %v", step, got)
		}
	}
	check(t, l, q, now, list("pods", "2", "cpu", "3"), corev1.ResourceList{})
	l.Put("ns", "b", asking("1500m"))
	check(t, l, q, now, list("pods", "2", "cpu", "2500m"), list("cpu", "500m"))
	l.Put("ns", "b", item{usage: quota.Pod(list("cpu", "2"), nil, true), scopes: quota.Scopes{IsPod: true}})
	in := check(t, l, q, now, list("pods", "1", "cpu", "1"), list("cpu", "2", "pods", "1"))
	l.Remove("ns", "a")
	l.Settle(q, in.Released)
	check(t, l, q, now, list("pods", "0", "cpu", "0"), list("cpu", "1", "pods", "1"))
	// An object that the list does not contain is removed.
	l.Put("ns", "c", asking("1"))
	l.Refill("ns", func(visit func(types.UID, item)) { visit("d", asking("4")) })
	check(t, l, q, now, list("pods", "1", "cpu", "4"), list("cpu", "2", "pods", "2"))
	q = q.DeepCopy()
	q.Spec.Hard = list("cpu", "9")
	l.Open(q, now)
	check(t, l, q, now, list("cpu", "4"), corev1.ResourceList{})
	l.Close(q)
	if _, ok := l.Read(q, now); ok || l.Keeps("ns") || len(l.Specs()) != 0 {
		t.Error("it keeps a quota that is gone")
	}
}

// Only objects in all scopes of a quota count.
func TestLedgerScopes(t *testing.T) {
	l := NewLedger()
	bounded, plain := newQuota(list("pods", "9"), nil, "Terminating"), newQuota(list("pods", "9"), nil)
	lasting := newQuota(list("pods", "9"), nil, "NotTerminating")
	plain.Name, lasting.Name = "plain", "lasting"
	for _, q := range []*corev1.ResourceQuota{bounded, plain, lasting} {
		l.Open(q, now)
	}
	l.Put("ns", "a", asking("1"))
	in := asking("1")
	in.scopes.Terminating = true
	if got := l.Put("ns", "b", in); len(got) != 2 {
		t.Errorf("wakes %v", got)
	}
	check(t, l, bounded, now, list("pods", "1"), corev1.ResourceList{})
	check(t, l, plain, now, list("pods", "2"), corev1.ResourceList{})
	check(t, l, lasting, now, list("pods", "1"), corev1.ResourceList{})
	// From now on it has a deadline. Admission has charged the one quota for it, the other releases it.
	if got := slices.Sorted(slices.Values(l.Put("ns", "a", in))); !slices.Equal(got, []string{"lasting", "q"}) {
		t.Errorf("a move wakes %v", got)
	}
	check(t, l, bounded, now, list("pods", "2"), corev1.ResourceList{})
	check(t, l, plain, now, list("pods", "2"), corev1.ResourceList{})
	check(t, l, lasting, now, list("pods", "0"), list("pods", "1"))
}

// A Pod whose node never confirms its end stops counting twice its grace period after its deletion began.
func TestOverduePods(t *testing.T) {
	grace := int64(30)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", DeletionTimestamp: &metav1.Time{Time: now},
		DeletionGracePeriodSeconds: &grace}}
	l, q := NewLedger(), newQuota(list("pods", "9", "count/pods", "9"), nil)
	l.Open(q, now)
	l.Put("ns", "a", ofPod(pod, now))
	in := check(t, l, q, now.Add(30*time.Second), list("pods", "1", "count/pods", "1"), corev1.ResourceList{})
	if !in.Overdue.Equal(now.Add(30 * time.Second)) {
		t.Errorf("it is overdue at %v", in.Overdue)
	}
	in = check(t, l, q, now.Add(31*time.Second), list("pods", "0", "count/pods", "1"), list("pods", "1"))
	if !in.Overdue.IsZero() {
		t.Errorf("it is overdue again at %v", in.Overdue)
	}
}

// request is an admitted create: charged, but the object does not exist yet.
type request struct {
	uid types.UID
	at  time.Time
}

// late is an event that has not reached the controller yet.
type late struct {
	apply func()
	at    time.Time
}

// DEP-136: however requests overlap and however late the controller learns of them, existing objects and objects on
// their way never exceed the quota together; and once all is quiet, charges for objects that were never created are
// released.
func TestNeverExceeded(t *testing.T) {
	for seed := range uint64(200) {
		r, at := rand.New(rand.NewPCG(seed, 1)), now
		const room = 5
		stored := newQuota(list("pods", fmt.Sprint(room)), list("pods", "0"))
		l, cached := NewLedger(), stored.DeepCopy()
		l.Open(cached, at)
		there, pending, events, made := map[types.UID]bool{}, []request{}, []late{}, 0
		for range 800 {
			at = at.Add(time.Duration(r.IntN(8000)) * time.Millisecond)
			used := stored.Status.Used["pods"]
			switch r.IntN(6) {
			case 0, 1: // admission charges
				if used.Value() < room {
					made++
					stored = stored.DeepCopy()
					stored.Status.Used["pods"] = *resource.NewQuantity(used.Value()+1, resource.DecimalSI)
					pending = append(pending, request{types.UID(fmt.Sprint(made)), at})
				}
			case 2: // a request ends, successfully or not; none lives longer than a minute
				for i := 0; i < len(pending); i++ {
					if overdue := at.Sub(pending[i].at) > 59*time.Second; overdue || r.IntN(3) == 0 {
						if uid := pending[i].uid; !overdue && r.IntN(4) > 0 {
							there[uid] = true
							events = append(events, late{func() { l.Put("ns", uid, asking("1")) }, at})
						}
						pending = append(pending[:i], pending[i+1:]...)
						i--
					}
				}
			case 3: // an object is deleted
				for uid := range there {
					delete(there, uid)
					events = append(events, late{func() { l.Remove("ns", uid) }, at})
					break
				}
			case 4: // the controller learns of some of it
				for len(events) > 0 && r.IntN(2) == 0 {
					events[0].apply()
					events = events[1:]
				}
			default: // the controller makes a pass; if its copy of the quota is old, the write is refused
				for len(events) > 0 && at.Sub(events[0].at) > 45*time.Second {
					events[0].apply()
					events = events[1:]
				}
				if r.IntN(2) == 0 {
					cached = stored
					l.Open(cached, at)
				}
				in, _ := l.Read(cached, at)
				add(in.Counted, list("pods", "0"))
				plan := Decide(in)
				if cached == stored {
					stored = stored.DeepCopy()
					stored.Status = plan.Status
					cached = stored
					l.Open(cached, at)
					l.Settle(cached, in.Released)
				}
			}
			pendingNow := 0
			for _, p := range pending {
				if at.Sub(p.at) <= time.Minute {
					pendingNow++
				}
			}
			if len(there)+pendingNow > room {
				t.Fatalf("seed %d: %d there and %d on their way, of %d", seed, len(there), pendingNow, room)
			}
		}
		for _, event := range events {
			event.apply()
		}
		l.Open(stored, at)
		in, _ := l.Read(stored, at.Add(121*time.Second))
		add(in.Counted, list("pods", "0"))
		plan := Decide(in)
		if used := plan.Status.Used["pods"]; used.Value() != int64(len(there)) {
			t.Fatalf("seed %d: %d used when all is quiet, and there are %d", seed, used.Value(), len(there))
		}
	}
}
