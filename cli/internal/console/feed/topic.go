// Package feed keeps rows that pages follow. A topic has one source, however many pages follow it. The source runs from
// the first page on, and until the last has left.
package feed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// linger is how long a source still runs when the last page has left: a page that is loaded again finds what was there.
const linger = 15 * time.Second

// Row is one row of a topic.
type Row struct {
	// Key is the row's own in its topic.
	Key string
	// Namespace is that of its object; empty for one without, which belongs to what is shown of every namespace.
	Namespace string
	// At orders the rows of a topic that keeps only the newest.
	At time.Time
	// Content is the row in JSON.
	Content json.RawMessage
}

// Source fills a topic until ctx ends.
type Source func(ctx context.Context, into Sink)

// Sink is what a source fills.
type Sink interface {
	// Replace says which rows there are.
	Replace(rows []Row)
	// Set adds a row, or replaces the one of its key.
	Set(row Row)
	// Remove removes the row of a key, if there is one.
	Remove(key string)
	// Problem says why the rows are not known, or no longer; empty if they are. The rows that are there stay.
	Problem(text string)
}

// Topic is a set of rows that a source fills while a page follows it.
type Topic struct {
	name   string
	keep   int
	source Source
	// start runs a source in the background until stop is called, or everything ends.
	start func(Source, Sink) (stop func())

	mu      sync.Mutex // guards what follows, and what the readers have beneath it
	rows    map[string]Row
	loaded  bool
	problem string
	readers map[*Reader]struct{}
	// stop ends the source that runs; nil if none does. leaves ends it later.
	stop   func()
	leaves *time.Timer
	// run counts the runs of the source: what one says that has been stopped no longer counts.
	run int
}

// Hub has the topics.
type Hub struct {
	topics map[string]*Topic
	start  func(Source, Sink) (stop func())
	ends   sync.WaitGroup
}

// NewHub returns a hub without topics, whose sources end with ctx.
func NewHub(ctx context.Context) *Hub {
	h := &Hub{topics: map[string]*Topic{}}
	h.start = func(source Source, into Sink) func() {
		ctx, stop := context.WithCancel(ctx)
		h.ends.Go(func() { source(ctx, into) })
		return stop
	}
	return h
}

// Add adds a topic. If keep is not 0, the topic has only so many rows, the newest.
func (h *Hub) Add(name string, keep int, source Source) {
	h.topics[name] = &Topic{name: name, keep: keep, source: source, start: h.start, rows: map[string]Row{},
		readers: map[*Reader]struct{}{}}
}

// Topic returns the topic of a name; nil if there is none.
func (h *Hub) Topic(name string) *Topic { return h.topics[name] }

// Wait returns when all sources have ended. The context of NewHub has to end before.
func (h *Hub) Wait() { h.ends.Wait() }

// join adds a reader, and starts the source for the first.
func (t *Topic) join(r *Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers[r] = struct{}{}
	if t.leaves != nil {
		t.leaves.Stop()
		t.leaves = nil
	}
	if t.stop == nil {
		t.run++
		t.stop = t.start(t.source, &writer{topic: t, run: t.run})
	}
}

// leave removes a reader; the source ends if no other comes soon.
func (t *Topic) leave(r *Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, follows := t.readers[r]; !follows {
		return
	}
	delete(t.readers, r)
	if len(t.readers) == 0 {
		t.leaves = time.AfterFunc(linger, t.end)
	}
}

// end stops the source if still no page follows the topic.
func (t *Topic) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.readers) > 0 || t.stop == nil {
		return
	}
	t.stop()
	t.stop, t.leaves = nil, nil
	t.run++
	t.rows, t.loaded, t.problem = map[string]Row{}, false, ""
}

// writer is the sink of one run of a source.
type writer struct {
	topic *Topic
	run   int
}

// do changes the topic, unless the run is over.
func (w *writer) do(change func(t *Topic)) {
	t := w.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == w.run {
		change(t)
	}
}

// Replace implements Sink.
func (w *writer) Replace(rows []Row) {
	w.do(func(t *Topic) {
		there := make(map[string]bool, len(rows))
		for _, row := range rows {
			there[row.Key] = true
			t.set(row)
		}
		for key := range t.rows {
			if !there[key] {
				t.remove(key)
			}
		}
		t.forgetOldest(t.keep)
		if !t.loaded {
			t.loaded = true
			t.tell(func(r *Reader) { r.whole = true })
		}
	})
}

// Set implements Sink.
func (w *writer) Set(row Row) {
	w.do(func(t *Topic) {
		t.set(row)
		t.forgetOldest(t.keep + t.keep/8) // sorting each time would be too much
	})
}

// Remove implements Sink.
func (w *writer) Remove(key string) { w.do(func(t *Topic) { t.remove(key) }) }

// Problem implements Sink.
func (w *writer) Problem(text string) {
	w.do(func(t *Topic) {
		if t.problem != text {
			t.problem = text
			t.tell(func(r *Reader) { r.said = false })
		}
	})
}

// set stores a row. The lock is held, as for all that follow.
func (t *Topic) set(row Row) {
	if old, there := t.rows[row.Key]; there && bytes.Equal(old.Content, row.Content) {
		return
	}
	t.rows[row.Key] = row
	t.tell(func(r *Reader) { r.changed(row.Key) })
}

func (t *Topic) remove(key string) {
	if _, there := t.rows[key]; there {
		delete(t.rows, key)
		t.tell(func(r *Reader) { r.changed(key) })
	}
}

// forgetOldest removes the oldest rows if there are more than so many, for a topic that keeps only the newest.
func (t *Topic) forgetOldest(atMost int) {
	if t.keep == 0 || len(t.rows) <= atMost {
		return
	}
	all := make([]Row, 0, len(t.rows))
	for _, row := range t.rows {
		all = append(all, row)
	}
	slices.SortFunc(all, func(a, b Row) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Key, b.Key)) })
	for _, row := range all[t.keep:] {
		t.remove(row.Key)
	}
}

// tell changes every reader and wakes its page.
func (t *Topic) tell(change func(*Reader)) {
	for r := range t.readers {
		change(r)
		r.wake()
	}
}
