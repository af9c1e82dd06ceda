package resize

import (
	"maps"
	"slices"
	"testing"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// DEP-214: while a Pod is resized, its cgroup has room for all sizes that its parts may have, and what is known of
// an instance is kept as long.
func TestActuation(t *testing.T) {
	var a Actuation
	room := func(allocated string) int64 {
		before := pod("a", "1", "1Gi")
		return milli(a.Max(sizes.Of(pod("a", allocated, "1Gi"))).Apply(before))
	}
	if got := room("2"); got != 2000 || a.Cgroup != nil {
		t.Errorf("a Pod that was never resized has room for %d", got)
	}
	a.Begin(sizes.Of(pod("a", "3", "1Gi")))
	if got := room("2"); got != 3000 {
		t.Errorf("room for %d while it shrinks from 3000", got)
	}
	a.Begin(sizes.Of(pod("a", "2", "1Gi"))) // another one meanwhile
	if got := []int64{room("1"), room("4")}; !slices.Equal(got, []int64{3000, 4000}) {
		t.Errorf("room for %v, want what the first resize has not given back", got)
	}
	instance := sizes.Instance{Resources: pod("a", "1", "1Gi").Spec.Containers[0].Resources}
	a.Note(map[string]sizes.Instance{"c0": instance}, sizes.Of(pod("a", "1", "1Gi")))
	if got := room("1"); got != 1000 {
		t.Errorf("room for %d after all has been given back", got)
	}
	a.NoteRestart("c1")
	if _, known := a.SizeOf(&observed.Container{ID: "c0"}); !known {
		t.Error("the size of an instance that was updated is not known")
	}
	if _, known := a.SizeOf(&observed.Container{ID: "c1"}); known {
		t.Error("the size of an instance that nobody told is known")
	}
	a.Forget(func(id string) bool { return id == "c0" })
	if len(a.Updated) != 0 || !maps.Equal(a.Restarted, map[string]bool{"c1": true}) {
		t.Errorf("left is %+v", a)
	}
}
