// Package queue decides which Pod is tried next.
//
//	                 Pop          AddUnschedulable                      Requeue: a node can take one
//	Add --> active ------> being tried ------> unschedulable, by class ---------+--> active
//	          ^                  |                                              |
//	          |                  | Delay                                        v
//	          +------------------+------------------> backoff <-- while its delay lasts
//	                   delay over: Pop moves it
//
// Active Pods are ordered by priority, then by when they entered. An unschedulable Pod waits until a node can take a
// Pod of its class; how that is known is the caller's business. The package is pure: it has no clock.
//
//keelson:decision
package queue

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/backoff"
	"keelson.dev/services/scheduler/internal/class"
)

// MaxUnschedulable is how long a Pod stays unschedulable at most; then it is tried again even though nothing requeued
// it.
const MaxUnschedulable = 5 * time.Minute

// maxRequeued bounds how many Pods one Requeue moves.
const maxRequeued = 64

// Place says where an Entry is.
type Place string

// The places.
const (
	Nowhere       Place = "none"
	Active        Place = "active"
	Backoff       Place = "backoff"
	Unschedulable Place = "unschedulable"
	Held          Place = "held" // in a line
)

// Entry is a Pod that waits for a node.
type Entry struct {
	UID      types.UID
	Class    class.ID
	Priority int32
	// Attempts counts the tries that failed in a row.
	Attempts int

	place    Place
	entered  uint64    // order of the first Add
	arrived  time.Time // of the first Add
	since    time.Time // when it came to its place
	retryAt  time.Time // when its delay is over
	position int       // in the heap it is in
	line     string    // in which it is held
}

// Place returns where the entry is, since when, and when its delay is over.
func (e *Entry) Place() (place Place, since, retryAt time.Time) {
	if e.place == "" {
		return Nowhere, e.since, e.retryAt
	}
	return e.place, e.since, e.retryAt
}

// Arrived returns when the entry was first made active; zero if it never was.
func (e *Entry) Arrived() time.Time { return e.arrived }

// Queue holds the entries. Make one with New.
type Queue struct {
	policy        backoff.Policy
	entered       uint64
	active        entries
	backoff       entries
	unschedulable map[class.ID]*entries
	lines         map[string]*entries
	flushAt       time.Time
	moved         [len(moves)]uint64
}

// New returns an empty Queue whose delays grow as the policy says.
func New(policy backoff.Policy) *Queue {
	return &Queue{
		policy:        policy,
		active:        entries{before: urgent},
		backoff:       entries{before: func(a, b *Entry) bool { return a.retryAt.Before(b.retryAt) }},
		unschedulable: map[class.ID]*entries{},
		lines:         map[string]*entries{},
	}
}

// urgent orders by priority, then by entering.
func urgent(a, b *Entry) bool {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.entered, b.entered)) < 0
}

// Add makes the entry active. An entry that is elsewhere is moved; its attempts are forgotten.
func (q *Queue) Add(e *Entry, now time.Time) {
	q.Remove(e)
	if e.entered == 0 {
		q.entered++
		e.entered, e.arrived = q.entered, now
	}
	e.Attempts, e.retryAt = 0, time.Time{}
	q.activate(e, now)
	q.moved[added]++
}

// Pop takes out the most urgent active entry. Entries whose delay is over count as active.
func (q *Queue) Pop(now time.Time) (*Entry, bool) {
	q.settle(now)
	e := q.active.first()
	if e == nil {
		return nil, false
	}
	q.Remove(e)
	return e, true
}

// Delay puts an entry that was tried and failed for no reason of its own into backoff.
func (q *Queue) Delay(e *Entry, now time.Time) {
	q.failed(e, now)
	q.put(&q.backoff, e, Backoff, now)
	q.moved[delayed]++
}

// AddUnschedulable puts away an entry that fits on no node.
func (q *Queue) AddUnschedulable(e *Entry, now time.Time) {
	q.failed(e, now)
	q.put(q.unschedulableOf(e.Class), e, Unschedulable, now)
	q.moved[refused]++
	if q.flushAt.IsZero() {
		q.flushAt = now.Add(MaxUnschedulable)
	}
}

// Requeue takes unschedulable entries of the class out, the most urgent first, until one is active. Those whose delay
// lasts go to backoff on the way. More are requeued when the caller sees that a node can take yet another.
func (q *Queue) Requeue(id class.ID, now time.Time) {
	for range maxRequeued {
		e := q.head(id)
		if e == nil {
			return
		}
		q.Remove(e)
		if q.resume(e, now, fits, fitsLater) == Active {
			return
		}
	}
}

// Activate makes an entry active that waits, whatever its delay.
func (q *Queue) Activate(e *Entry, now time.Time) {
	if e.place == Unschedulable || e.place == Backoff {
		q.Remove(e)
		q.activate(e, now)
		q.moved[fits]++
	}
}

// Resume takes an unschedulable entry out, into backoff while its delay lasts.
func (q *Queue) Resume(e *Entry, now time.Time) {
	if e.place == Unschedulable {
		q.Remove(e)
		q.resume(e, now, fits, fitsLater)
	}
}

// MostUrgent returns the most urgent unschedulable entry of the class for which is holds; nil when there is none.
func (q *Queue) MostUrgent(id class.ID, is func(*Entry) bool) *Entry {
	first := q.head(id)
	if first == nil || is(first) {
		return first
	}
	var found *Entry
	for _, e := range q.unschedulable[id].list {
		if (found == nil || urgent(e, found)) && is(e) {
			found = e
		}
	}
	return found
}

// Reclass notes that the entry is of another class now. It stays where it is.
func (q *Queue) Reclass(e *Entry, id class.ID) {
	if e.place != Unschedulable {
		e.Class = id
		return
	}
	since := e.since
	q.Remove(e)
	e.Class = id
	q.put(q.unschedulableOf(id), e, Unschedulable, since)
}

// Remove takes the entry out of where it is.
func (q *Queue) Remove(e *Entry) {
	switch e.place {
	case Active:
		q.active.remove(e)
	case Backoff:
		q.backoff.remove(e)
	case Unschedulable:
		at := q.unschedulable[e.Class]
		at.remove(e)
		if len(at.list) == 0 {
			delete(q.unschedulable, e.Class)
		}
	case Held:
		q.leaveLine(e)
	}
	e.place = Nowhere
}

// Next returns when Pop may have something it has not now: at once when an entry is active, false when only a change
// can make one active.
func (q *Queue) Next(now time.Time) (time.Time, bool) {
	if q.active.first() != nil {
		return now, true
	}
	at := q.flushAt
	if e := q.backoff.first(); e != nil && (at.IsZero() || e.retryAt.Before(at)) {
		at = e.retryAt
	}
	return at, !at.IsZero()
}

// HasUnschedulable reports whether entries of the class are unschedulable.
func (q *Queue) HasUnschedulable(id class.ID) bool { return q.unschedulable[id] != nil }

// Depth returns how many entries are in a place and since when the one that came first waits there.
func (q *Queue) Depth(p Place) (n int, oldest time.Time) {
	see := func(list []*Entry) {
		n += len(list)
		for _, e := range list {
			if oldest.IsZero() || e.since.Before(oldest) {
				oldest = e.since
			}
		}
	}
	switch p {
	case Active:
		see(q.active.list)
	case Backoff:
		see(q.backoff.list)
	case Unschedulable:
		for _, at := range q.unschedulable {
			see(at.list)
		}
	case Held:
		for _, at := range q.lines {
			see(at.list)
		}
	}
	return n, oldest
}

func (q *Queue) unschedulableOf(id class.ID) *entries {
	at := q.unschedulable[id]
	if at == nil {
		at = &entries{before: urgent}
		q.unschedulable[id] = at
	}
	return at
}

func (q *Queue) failed(e *Entry, now time.Time) {
	q.Remove(e)
	e.Attempts++
	e.retryAt = now.Add(q.policy.Delay(e.Attempts))
}

func (q *Queue) head(id class.ID) *Entry {
	if at := q.unschedulable[id]; at != nil {
		return at.first()
	}
	return nil
}

// resume makes the entry active, which counts as a move, or lets it wait for the rest of its delay, which counts as
// another.
func (q *Queue) resume(e *Entry, now time.Time, active, later move) Place {
	if now.Before(e.retryAt) {
		q.put(&q.backoff, e, Backoff, now)
		q.moved[later]++
	} else {
		q.activate(e, now)
		q.moved[active]++
	}
	return e.place
}

func (q *Queue) activate(e *Entry, now time.Time) { q.put(&q.active, e, Active, now) }

func (q *Queue) put(at *entries, e *Entry, p Place, now time.Time) {
	e.place, e.since = p, now
	at.push(e)
}

// settle moves entries whose delay is over, and those that were unschedulable for too long.
func (q *Queue) settle(now time.Time) {
	for e := q.backoff.first(); e != nil && !now.Before(e.retryAt); e = q.backoff.first() {
		q.Remove(e)
		q.activate(e, now)
		q.moved[delayOver]++
	}
	if q.flushAt.IsZero() || now.Before(q.flushAt) {
		return
	}
	var stale []*Entry
	q.flushAt = time.Time{}
	for _, at := range q.unschedulable {
		for _, e := range at.list {
			due := e.since.Add(MaxUnschedulable)
			if !now.Before(due) {
				stale = append(stale, e)
			} else if q.flushAt.IsZero() || due.Before(q.flushAt) {
				q.flushAt = due
			}
		}
	}
	for _, e := range stale {
		q.Remove(e)
		q.resume(e, now, overlong, overlongLater)
	}
}
