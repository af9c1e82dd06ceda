package queue

import "testing"

// Held entries come out by urgency, one at each release, and their tries still count.
func TestLines(t *testing.T) {
	q := newQueue()
	var entries [3]*Entry
	for i := range entries {
		entries[i] = &Entry{UID: "u", Priority: int32(i)}
		q.Add(entries[i], start)
	}
	for range entries {
		e, _ := q.Pop(start)
		e.Attempts = 2
		q.Hold(e, "gpu", start)
	}
	if n, _ := q.Depth(Held); n != 3 || len(q.Lines()) != 1 {
		t.Fatalf("%d held in %v", n, q.Lines())
	}
	if _, ok := q.Pop(start); ok {
		t.Fatal("a held entry is popped")
	}
	q.Release("other", start)
	q.Release("gpu", start)
	if e, ok := q.Pop(start); !ok || e != entries[2] || e.Attempts != 2 {
		t.Errorf("released %+v", e)
	}
	q.Remove(entries[1])
	q.Add(entries[0], start)
	if n, _ := q.Depth(Held); n != 0 || len(q.Lines()) != 0 {
		t.Errorf("%d held in %v", n, q.Lines())
	}
}
