package objectsize

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func object(name string) Object {
	return Object{Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "a", Name: name}
}

// What is not small is remembered until it is; what is small is not even asked for its name as long as there is nothing
// else.
func TestObjects(t *testing.T) {
	b := &Book{}
	b.Note(func() Object { t.Error("asked for"); return Object{} }, noted-1)
	note := func(name string, bytes int64) { b.Note(func() Object { return object(name) }, bytes) }
	note("one", noted)
	note("two", 10*noted)
	note("three", noted-1)
	for name, want := range map[string]int64{"one": noted, "two": 10 * noted, "three": 0, "four": 0} {
		if got := b.OfObject(object(name)); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	note("two", 1)
	if got := b.OfObject(object("two")); got != 0 {
		t.Errorf("what has become small counts %d bytes", got)
	}
	for i := range remembered + 100 {
		note(fmt.Sprint(i), noted)
	}
	if got := len(b.objects); got != remembered {
		t.Errorf("%d are remembered", got)
	}
}

// The longest answer counts, until it is long ago.
func TestLists(t *testing.T) {
	b, start := &Book{}, time.Now()
	l := List{Resource: schema.GroupResource{Resource: "pods"}}
	for _, row := range []struct {
		after         time.Duration
		answered, now int64
	}{
		{0, Large - 1, 0},
		{0, 5 * Large, 5 * Large},
		{fresh, Large, 5 * Large},
		{fresh, 1, 5 * Large},
		{fresh + 1, 1, 0},
		{fresh + 1, Large, Large},
	} {
		now := start.Add(row.after)
		b.Answered(l, row.answered, now)
		if got := b.OfList(l, now); got != row.now {
			t.Errorf("%d bytes after %s: %d, want %d", row.answered, row.after, got, row.now)
		}
	}
	if got := b.OfList(List{Resource: l.Resource, Namespace: "a"}, start); got != 0 {
		t.Errorf("of a namespace: %d", got)
	}
}
