package feed

import (
	"cmp"
	"encoding/json"
	"slices"
)

// mostChanged is how many changed rows a reader remembers one by one. It reads everything again after more.
const mostChanged = 4096

// Reader follows a topic for one page. What it remembers is bounded: which rows have changed, not what they were.
type Reader struct {
	topic     *Topic
	namespace string
	limit     int
	wake      func()

	// The topic's lock guards what follows. whole is set if all rows are to be read again, said if the page knows the
	// topic's problem and how many rows are hidden from it.
	whole, said bool
	dirty       map[string]struct{}
	// shown are the rows that the page has.
	shown  map[string]struct{}
	hidden int
}

// Change is what a page has to change. Its rows are in the order of their keys.
type Change struct {
	Topic string `json:"topic"`
	// Whole is set if the page is to forget the rows that it has.
	Whole bool         `json:"whole,omitempty"`
	Set   []ChangedRow `json:"set,omitempty"`
	Gone  []string     `json:"gone,omitempty"`
	// Loading is set as long as the rows are not known.
	Loading bool `json:"loading,omitempty"`
	// Hidden is how many more rows there are than a page gets.
	Hidden int `json:"hidden,omitempty"`
	// Problem says why the rows are not known, or no longer.
	Problem string `json:"problem,omitempty"`
}

// ChangedRow is a row of a page.
type ChangedRow struct {
	Key string          `json:"key"`
	Row json.RawMessage `json:"row"`
}

// Follow returns a reader of at most limit rows of a namespace, or of all if it is empty. wake is called when Next has
// something new; it must not block. Leave ends the reader.
func (t *Topic) Follow(namespace string, limit int, wake func()) *Reader {
	r := &Reader{topic: t, namespace: namespace, limit: limit, wake: wake, whole: true, dirty: map[string]struct{}{},
		shown: map[string]struct{}{}}
	t.join(r)
	return r
}

// Leave ends the reader.
func (r *Reader) Leave() { r.topic.leave(r) }

// changed remembers that a row has changed. The topic's lock is held.
func (r *Reader) changed(key string) {
	switch {
	case r.whole:
	case len(r.dirty) >= mostChanged:
		r.whole = true
		clear(r.dirty)
	default:
		r.dirty[key] = struct{}{}
	}
}

// Next returns what has changed since it was called last; news is false if nothing has.
func (r *Reader) Next() (change Change, news bool) {
	t := r.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	change = Change{Topic: t.name, Whole: r.whole, Loading: !t.loaded, Problem: t.problem}
	changed := r.dirty
	if r.whole {
		clear(r.shown)
		changed = r.all()
	}
	hidden := r.apply(changed, &change)
	news = r.whole || !r.said || len(change.Set)+len(change.Gone) > 0 || hidden != r.hidden
	r.whole, r.said, r.hidden, change.Hidden = false, true, hidden, hidden
	clear(r.dirty)
	return change, news
}

// all returns the keys of the rows that the page may have.
func (r *Reader) all() map[string]struct{} {
	keys := make(map[string]struct{}, len(r.topic.rows))
	for key := range r.topic.rows {
		keys[key] = struct{}{}
	}
	return keys
}

// apply puts the changed rows that the page has, or may have, into the change, and returns how many it may not have.
func (r *Reader) apply(changed map[string]struct{}, change *Change) (hidden int) {
	var fresh []string
	for key := range changed {
		row, there := r.topic.rows[key]
		_, shown := r.shown[key]
		switch {
		case !there && shown:
			delete(r.shown, key)
			change.Gone = append(change.Gone, key)
		case there && shown:
			change.Set = append(change.Set, ChangedRow{key, row.Content})
		case there && r.wants(row):
			fresh = append(fresh, key)
		}
	}
	if r.hidden > 0 && len(change.Gone) > 0 && !change.Whole { // those that there was no room for get it
		fresh = fresh[:0]
		for key, row := range r.topic.rows {
			if _, shown := r.shown[key]; !shown && r.wants(row) {
				fresh = append(fresh, key)
			}
		}
	}
	slices.Sort(fresh)
	for _, key := range fresh[:min(len(fresh), max(0, r.limit-len(r.shown)))] {
		r.shown[key] = struct{}{}
		change.Set = append(change.Set, ChangedRow{key, r.topic.rows[key].Content})
	}
	slices.SortFunc(change.Set, func(a, b ChangedRow) int { return cmp.Compare(a.Key, b.Key) })
	slices.Sort(change.Gone)
	return r.count() - len(r.shown)
}

// wants reports whether a row is one of those that the reader follows.
func (r *Reader) wants(row Row) bool {
	return r.namespace == "" || row.Namespace == r.namespace || row.Namespace == ""
}

// count returns how many rows the reader follows.
func (r *Reader) count() int {
	if r.namespace == "" {
		return len(r.topic.rows)
	}
	count := 0
	for _, row := range r.topic.rows {
		if r.wants(row) {
			count++
		}
	}
	return count
}
