package gc

import (
	"slices"
	"testing"
	"time"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

func container(name string, attempt uint32, state observed.ContainerState) observed.Container {
	return observed.Container{ID: name + string('0'+rune(attempt)), Name: name, Attempt: attempt, State: state,
		SandboxID: "s1"}
}

func TestDeadContainers(t *testing.T) {
	pods := []observed.Pod{{Containers: []observed.Container{
		container("a", 0, observed.Exited), container("a", 1, observed.Exited), container("a", 2, observed.Exited),
		container("a", 3, observed.Running),
		container("b", 0, observed.Exited), container("b", 1, observed.Exited),
		container("c", 0, observed.Unknown), container("c", 1, observed.Running),
	}}}
	got := deadContainers(pods)
	slices.Sort(got)
	if want := []string{"a0", "a1", "b0"}; !slices.Equal(got, want) {
		t.Errorf("removes %v, want %v", got, want)
	}
}

func TestDeadSandboxes(t *testing.T) {
	pods := []observed.Pod{{
		Sandboxes: []observed.Sandbox{
			{ID: "s0", Attempt: 0}, {ID: "s1", Attempt: 1}, {ID: "s2", Attempt: 2, Ready: true},
			{ID: "s3", Attempt: 3}},
		Containers: []observed.Container{container("a", 0, observed.Exited)},
	}}
	if got := deadSandboxes(pods); !slices.Equal(got, []string{"s0"}) {
		t.Errorf("removes %v, want only s0: s1 holds a container, s2 is ready, s3 is the newest", got)
	}
}

func TestUnusedImages(t *testing.T) {
	now := time.Unix(10000, 0)
	images := []runtime.Image{{ID: "old", Size: 10}, {ID: "older", Size: 10}, {ID: "used", Size: 10},
		{ID: "pinned", Size: 10, Pinned: true}, {ID: "new", Size: 10}}
	hour := now.Add(-time.Hour)
	uses := map[string]imageUse{
		"old": {firstSeen: hour, lastUsed: hour.Add(time.Minute)}, "older": {firstSeen: hour, lastUsed: hour},
		"used":   {firstSeen: hour},
		"pinned": {firstSeen: hour}, "new": {firstSeen: now.Add(-time.Minute)},
	}
	inUse := map[string]bool{"used": true}
	for need, want := range map[uint64][]string{0: nil, 5: {"older"}, 10: {"older"}, 11: {"older", "old"},
		1000: {"older", "old"}} {
		if got := unusedImages(images, uses, inUse, need, now); !slices.Equal(got, want) {
			t.Errorf("to free %d bytes it removes %v, want %v", need, got, want)
		}
	}
}

func TestToFree(t *testing.T) {
	for _, r := range []struct{ total, free, want uint64 }{
		{1000, 200, 0}, {1000, 150, 50}, {1000, 0, 200}, {0, 0, 0}, {1000, 2000, 0},
	} {
		if got := toFree(r.total, r.free, 85, 80); got != r.want {
			t.Errorf("toFree(%d, %d) = %d, want %d", r.total, r.free, got, r.want)
		}
	}
}
