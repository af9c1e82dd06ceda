package watchstream

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"keelson.dev/kit/contained"
)

const (
	// queued is how many events may wait for one client; an event takes 32 bytes, its object is shared with the watch
	// cache and the other clients.
	queued = 4096
	// copied is how many events may wait whose object only this client gets, as those that a watch begins with. The
	// watch cache waits until there is room again.
	copied = 256
	// handed is how many events are handed over without waiting.
	handed = 16
)

// queue passes the events of a watch on, and holds those that its reader does not take yet. Where as many wait as may,
// the watch ends after them; the reader goes on from the last version that it has seen.
type queue struct {
	watch *resumable
	out   chan watch.Event
	done  chan struct{}
	stop  sync.Once

	waiting []watch.Event
	// copies is how many of these are for this reader alone.
	copies int
}

func newQueue(w *resumable) *queue {
	q := &queue{watch: w, out: make(chan watch.Event, handed), done: make(chan struct{})}
	contained.Go("passing on a watch", q.pass, nil)
	return q
}

// ResultChan implements watch.Interface.
func (q *queue) ResultChan() <-chan watch.Event { return q.out }

// Stop implements watch.Interface.
func (q *queue) Stop() { q.stop.Do(func() { close(q.done) }) }

func (q *queue) pass() {
	defer close(q.out)
	// The watch may be another one by then.
	defer func() { q.watch.source.Stop() }()
	for in := q.watch.source.ResultChan(); in != nil || len(q.waiting) > 0; {
		from := in
		if q.copies >= copied {
			from = nil
		}
		select {
		case event, ok := <-from:
			switch {
			case ok && q.take(event):
			case !ok && q.watch.resume():
				in = q.watch.source.ResultChan()
			default:
				in = nil
			}
		case q.next() <- q.first():
			q.drop()
		case <-q.done:
			return
		}
	}
}

// take hands an event over where that needs no waiting, and keeps it otherwise. It returns false when the event was the
// last for which there was room.
func (q *queue) take(event watch.Event) bool {
	q.watch.note(event)
	if len(q.waiting) == 0 {
		select {
		case q.out <- event:
			return true
		default:
		}
	}
	q.waiting = append(q.waiting, event)
	if !shared(event) {
		q.copies++
	}
	if len(q.waiting) < queued {
		return true
	}
	ended.WithLabelValues(q.watch.resource.Group, q.watch.resource.Resource).Inc()
	q.watch.source.Stop()
	return false
}

// next is where the first event goes, nowhere while there is none.
func (q *queue) next() chan<- watch.Event {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.out
}

func (q *queue) first() watch.Event {
	if len(q.waiting) == 0 {
		return watch.Event{}
	}
	return q.waiting[0]
}

func (q *queue) drop() {
	if !shared(q.waiting[0]) {
		q.copies--
	}
	// The array lives until the next append needs more room.
	q.waiting[0] = watch.Event{}
	q.waiting = q.waiting[1:]
}
