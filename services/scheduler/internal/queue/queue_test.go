package queue

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/backoff"
	"keelson.dev/services/scheduler/internal/class"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newQueue() *Queue { return New(backoff.Policy{First: time.Second, Max: 10 * time.Second}) }

func entry(uid string, priority int32) *Entry {
	return &Entry{UID: types.UID(uid), Class: 1, Priority: priority}
}

// popAll returns the names of all entries that are due.
func popAll(q *Queue, now time.Time) string {
	names := ""
	for {
		e, ok := q.Pop(now)
		if !ok {
			return names
		}
		names += string(e.UID)
	}
}

func TestOrder(t *testing.T) {
	for name, test := range map[string]struct {
		add  []*Entry
		want string
	}{
		"SCH-030: higher priority first":      {[]*Entry{entry("a", 0), entry("b", 10), entry("c", -5)}, "bac"},
		"SCH-030: ties by time of entering":   {[]*Entry{entry("a", 1), entry("b", 1), entry("c", 1)}, "abc"},
		"SCH-030: one goes before its elders": {[]*Entry{entry("a", 0), entry("n", 1000), entry("b", 0)}, "nab"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue()
			for _, e := range test.add {
				q.Add(e, start)
			}
			if got := popAll(q, start); got != test.want {
				t.Errorf("popped %q, want %q", got, test.want)
			}
		})
	}
}

// A Pod keeps its rank among equals when it is tried again. SCH-030
func TestRankOutlastsRetries(t *testing.T) {
	q := newQueue()
	a, b := entry("a", 0), entry("b", 0)
	q.Add(a, start)
	q.Add(b, start)
	first, _ := q.Pop(start)
	q.Delay(first, start)
	if got := popAll(q, start.Add(time.Second)); got != "ab" {
		t.Errorf("popped %q, want the one that entered first in front", got)
	}
}

// SCH-032: 1 s doubling to 10 s.
func TestDelaysGrow(t *testing.T) {
	q := newQueue()
	e := entry("a", 0)
	q.Add(e, start)
	now := start
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
		10 * time.Second, 10 * time.Second} {
		if _, ok := q.Pop(now); !ok {
			t.Fatalf("try %d: nothing to pop", i)
		}
		q.Delay(e, now)
		if _, ok := q.Pop(now.Add(want - 1)); ok {
			t.Fatalf("try %d: popped before %s", i, want)
		}
		if at, ok := q.Next(now); !ok || !at.Equal(now.Add(want)) {
			t.Fatalf("try %d: next at %s, want %s", i, at, now.Add(want))
		}
		now = now.Add(want)
	}
}

// SCH-027: while a Pod of high priority waits for its delay, one of lower priority goes before it.
func TestDelayLetsLowerPriorityPass(t *testing.T) {
	q := newQueue()
	high := entry("h", 100)
	q.Add(high, start)
	q.Pop(start)
	q.Delay(high, start)
	q.Add(entry("l", 0), start)
	if got := popAll(q, start); got != "l" {
		t.Errorf("popped %q, want the one of lower priority", got)
	}
	if got := popAll(q, start.Add(time.Second)); got != "h" {
		t.Errorf("popped %q after the delay", got)
	}
}

func TestRequeue(t *testing.T) {
	later := start.Add(time.Minute) // every delay is over
	for name, test := range map[string]struct {
		requeue    class.ID
		at         time.Time
		want, rest string // popped after Requeue, and after a second one
	}{
		"SCH-026: the most urgent of the class, one at a time": {1, later, "b", "a"},
		"SCH-032: no event of another class":                   {2, later, "", ""},
		"SCH-032: not before its delay is over":                {1, start, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue()
			for _, e := range []*Entry{entry("a", 0), entry("b", 5)} {
				q.Add(e, start)
				q.Pop(start)
				q.AddUnschedulable(e, start)
			}
			q.Requeue(test.requeue, test.at)
			if got := popAll(q, test.at); got != test.want {
				t.Errorf("requeued %q, want %q", got, test.want)
			}
			q.Requeue(test.requeue, test.at)
			if got := popAll(q, test.at); got != test.rest {
				t.Errorf("then requeued %q, want %q", got, test.rest)
			}
		})
	}
}

// An unschedulable Pod is tried again after five minutes though nothing requeued it. SCH-032
func TestUnschedulableIsNotForever(t *testing.T) {
	q := newQueue()
	e := entry("a", 0)
	q.Add(e, start)
	q.Pop(start)
	q.AddUnschedulable(e, start)
	const longest = 5 * time.Minute
	if got := popAll(q, start.Add(longest-1)); got != "" {
		t.Errorf("popped %q too soon", got)
	}
	if at, ok := q.Next(start); !ok || !at.Equal(start.Add(longest)) {
		t.Errorf("next at %s, want %s", at, start.Add(longest))
	}
	if got := popAll(q, start.Add(longest)); got != "a" {
		t.Errorf("popped %q", got)
	}
}

// Each unschedulable Pod has its own five minutes, also when it failed after others and is less urgent than they are.
func TestEachUnschedulablePodHasItsTime(t *testing.T) {
	q := newQueue()
	failAt := func(e *Entry, at time.Time) {
		q.Add(e, at)
		q.Remove(e)
		q.AddUnschedulable(e, at)
	}
	failAt(entry("a", 1), start)
	failAt(entry("b", 0), start.Add(time.Minute))
	failAt(entry("c", 5), start.Add(2*time.Minute))
	for _, test := range []struct {
		at   time.Duration
		want string
		next time.Duration // 0 for none
	}{
		{5*time.Minute - 1, "", 5 * time.Minute},
		{5 * time.Minute, "a", 6 * time.Minute},
		{6*time.Minute - 1, "", 6 * time.Minute},
		{6 * time.Minute, "b", 7 * time.Minute},
		{8 * time.Minute, "c", 0},
	} {
		if got := popAll(q, start.Add(test.at)); got != test.want {
			t.Errorf("after %s popped %q, want %q", test.at, got, test.want)
		}
		next, ok := q.Next(start.Add(test.at))
		if ok != (test.next > 0) || ok && !next.Equal(start.Add(test.next)) {
			t.Errorf("after %s next at %s, %v, want %s", test.at, next, ok, start.Add(test.next))
		}
	}
}

// The next time is the first of the delays and of the unschedulable Pods' longest times.
func TestNext(t *testing.T) {
	q := newQueue()
	if at, ok := q.Next(start); ok {
		t.Errorf("an empty queue has something to do at %s", at)
	}
	unschedulable, delayed, active := entry("p", 0), entry("d", 0), entry("a", 0)
	q.AddUnschedulable(unschedulable, start)
	if at, _ := q.Next(start); !at.Equal(start.Add(5 * time.Minute)) {
		t.Errorf("with an unschedulable Pod next at %s", at)
	}
	q.Delay(delayed, start)
	if at, _ := q.Next(start); !at.Equal(start.Add(time.Second)) {
		t.Errorf("with a delayed Pod next at %s", at)
	}
	delayed.Attempts = 60 // the greatest delay is ten seconds, longer than the rest of the unschedulable Pod's time
	q.Delay(delayed, start.Add(295*time.Second))
	if at, _ := q.Next(start.Add(295 * time.Second)); !at.Equal(start.Add(5 * time.Minute)) {
		t.Errorf("with a Pod delayed beyond the unschedulable one's time next at %s", at)
	}
	q.Add(active, start)
	if at, _ := q.Next(start); !at.Equal(start) {
		t.Errorf("with an active Pod next at %s", at)
	}
}

// One Requeue moves Pods whose delay lasts aside, at most 64 of them, and goes on until one is active.
func TestRequeuePassesThoseThatAreDelayed(t *testing.T) {
	q := newQueue()
	for i := range 70 {
		q.AddUnschedulable(entry("late", int32(100-i)), start)
	}
	q.Requeue(1, start)
	if n, _ := q.Depth(Backoff); n != 64 {
		t.Errorf("%d Pods were moved, want 64", n)
	}
	if n, _ := q.Depth(Unschedulable); n != 6 {
		t.Errorf("%d Pods are unschedulable still, want 6", n)
	}
	q.Requeue(1, start.Add(time.Minute))
	if n, _ := q.Depth(Active); n != 1 {
		t.Errorf("%d Pods are active, want the one whose delay is over", n)
	}
}

// How long the first of a place waits: the oldest counts, wherever it stands.
func TestDepthTellsTheOldest(t *testing.T) {
	q := newQueue()
	q.Add(entry("a", 0), start.Add(time.Second))
	q.Add(entry("b", 9), start.Add(3*time.Second))
	q.Add(entry("c", 0), start)
	if n, oldest := q.Depth(Active); n != 3 || !oldest.Equal(start) {
		t.Errorf("%d wait, the oldest since %s", n, oldest)
	}
	for i, at := range []time.Duration{2, 1, 3} {
		e := entry("p", 0)
		e.Class = class.ID(i + 1)
		q.AddUnschedulable(e, start.Add(at*time.Second))
	}
	if n, oldest := q.Depth(Unschedulable); n != 3 || !oldest.Equal(start.Add(time.Second)) {
		t.Errorf("%d are unschedulable, the oldest since %s", n, oldest)
	}
	if n, oldest := q.Depth("elsewhere"); n != 0 || !oldest.IsZero() {
		t.Errorf("%d wait nowhere, the oldest since %s", n, oldest)
	}
}

// A Pod that is added again starts afresh, but keeps its rank; a new one has no place.
func TestAddAgain(t *testing.T) {
	q := newQueue()
	e, other := entry("e", 0), entry("o", 0)
	if place, _, _ := e.Place(); place != Nowhere {
		t.Errorf("a new entry is in %s", place)
	}
	q.Add(e, start)
	q.Add(other, start)
	q.AddUnschedulable(e, start)
	q.Add(e, start.Add(time.Second))
	if place, since, retryAt := e.Place(); place != Active || !since.Equal(start.Add(time.Second)) ||
		!retryAt.IsZero() || e.Attempts != 0 {
		t.Errorf("it is in %s since %s, is retried at %s after %d tries", place, since, retryAt, e.Attempts)
	}
	if got := popAll(q, start.Add(time.Second)); got != "eo" {
		t.Errorf("popped %q, want the one that entered first in front", got)
	}
	if place, _, _ := e.Place(); place != Nowhere {
		t.Errorf("a popped entry is in %s", place)
	}
}

func TestRemoveAndDepth(t *testing.T) {
	q := newQueue()
	active, delayed, unschedulable := entry("a", 0), entry("d", 0), entry("p", 0)
	for _, e := range []*Entry{delayed, unschedulable, active} {
		q.Add(e, start)
	}
	q.Remove(delayed)
	q.Delay(delayed, start)
	q.Remove(unschedulable)
	q.AddUnschedulable(unschedulable, start)
	for place, e := range map[Place]*Entry{Active: active, Backoff: delayed, Unschedulable: unschedulable} {
		if n, oldest := q.Depth(place); n != 1 || !oldest.Equal(start) {
			t.Errorf("%s holds %d since %s, want 1 since %s", place, n, oldest, start)
		}
		if got, _, _ := e.Place(); got != place {
			t.Errorf("%s is in %s, want %s", e.UID, got, place)
		}
		q.Remove(e)
		if n, _ := q.Depth(place); n != 0 {
			t.Errorf("%s holds %d after Remove", place, n)
		}
	}
	if q.HasUnschedulable(1) {
		t.Error("the class still has unschedulable Pods")
	}
	if got := popAll(q, start.Add(time.Hour)); got != "" {
		t.Errorf("popped %q after Remove", got)
	}
}

// An entry whose class changes stays where it is, since when it is there, with its tries.
func TestReclass(t *testing.T) {
	later := start.Add(time.Minute)
	for name, test := range map[string]struct {
		put    func(*Queue, *Entry)
		place  Place
		popped string // by an event of the new class
	}{
		"active":        {func(q *Queue, e *Entry) { q.Add(e, start) }, Active, "e"},
		"in backoff":    {func(q *Queue, e *Entry) { q.Delay(e, start) }, Backoff, "e"},
		"unschedulable": {func(q *Queue, e *Entry) { q.AddUnschedulable(e, start) }, Unschedulable, "e"},
		"nowhere":       {func(*Queue, *Entry) {}, Nowhere, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue()
			e, other := entry("e", 0), entry("o", 0)
			q.AddUnschedulable(other, start)
			test.put(q, e)
			attempts, retryAt := e.Attempts, e.retryAt
			q.Reclass(e, 2)
			place, since, retry := e.Place()
			if place != test.place || e.Class != 2 || e.Attempts != attempts || !retry.Equal(retryAt) {
				t.Errorf("it is in %s of class %d after %d tries, retried at %s", place, e.Class, e.Attempts, retry)
			}
			if place != Nowhere && !since.Equal(start) {
				t.Errorf("it is there since %s, want %s", since, start)
			}
			if q.HasUnschedulable(2) != (test.place == Unschedulable) || !q.HasUnschedulable(1) {
				t.Errorf("unschedulable are class 1: %v, class 2: %v", q.HasUnschedulable(1), q.HasUnschedulable(2))
			}
			q.Requeue(2, later)
			if got := popAll(q, later); got != test.popped {
				t.Errorf("popped %q, want %q", got, test.popped)
			}
		})
	}
}
