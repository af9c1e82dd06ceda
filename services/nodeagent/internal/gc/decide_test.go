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
		container("d", 0, observed.Exited), container("d", 1, observed.Unknown), container("d", 2, observed.Exited),
		container("e", 0, observed.Exited),
	}}, {Containers: []observed.Container{container("a", 4, observed.Exited)}}}
	got := deadContainers(pods)
	slices.Sort(got)
	if want := []string{"a0", "a1", "b0", "d0"}; !slices.Equal(got, want) {
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
		got := unusedImages(unused(images, inUse), uses, need, DefaultSettings(), now)
		if !slices.Equal(got, want) {
			t.Errorf("to free %d bytes it removes %v, want %v", need, got, want)
		}
	}
}

// Of images last used at the same time the one that came first is removed first; a new one is kept for two minutes.
func TestWhichImageGoesFirst(t *testing.T) {
	now := time.Unix(10000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	used := ago(time.Minute)
	images := []runtime.Image{{ID: "b", Size: 1}, {ID: "a", Size: 1}, {ID: "first", Size: 1}, {ID: "kept", Size: 1},
		{ID: "unknown", Size: 1}}
	uses := map[string]imageUse{
		"a": {firstSeen: ago(2 * time.Minute), lastUsed: used}, "b": {firstSeen: ago(2 * time.Minute), lastUsed: used},
		"first": {firstSeen: ago(time.Hour), lastUsed: used},
		"kept":  {firstSeen: ago(2*time.Minute - time.Nanosecond), lastUsed: ago(time.Hour)},
	}
	for need, want := range map[uint64][]string{1: {"unknown"}, 2: {"unknown", "first"},
		3: {"unknown", "first", "a"}, 99: {"unknown", "first", "a", "b"}} {
		if got := unusedImages(images, uses, need, DefaultSettings(), now); !slices.Equal(got, want) {
			t.Errorf("to free %d bytes it removes %v, want %v", need, got, want)
		}
	}
}

// Images unused for longer than the maximum age are removed regardless of the disk, and count toward what the disk
// needs. (imageMaximumGCAge, KubeletConfiguration v1beta1.)
func TestImagesUnusedForTooLong(t *testing.T) {
	now := time.Unix(100000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	images := []runtime.Image{{ID: "young", Size: 10}, {ID: "justOld", Size: 10}, {ID: "notYet", Size: 10},
		{ID: "never", Size: 10}, {ID: "usedLately", Size: 10}}
	uses := map[string]imageUse{
		"young":      {firstSeen: ago(time.Hour)},
		"justOld":    {firstSeen: ago(9 * time.Hour), lastUsed: ago(2*time.Hour + 1)},
		"notYet":     {firstSeen: ago(9 * time.Hour), lastUsed: ago(2 * time.Hour)},
		"never":      {firstSeen: ago(2*time.Hour + 1)},
		"usedLately": {firstSeen: ago(9 * time.Hour), lastUsed: ago(time.Minute)},
	}
	for _, row := range []struct {
		maxAge time.Duration
		need   uint64
		want   []string
	}{
		{0, 0, nil},
		{0, 1, []string{"never"}},
		{2 * time.Hour, 0, []string{"justOld", "never"}},
		{2 * time.Hour, 20, []string{"justOld", "never"}},
		{2 * time.Hour, 21, []string{"justOld", "never", "young"}},
		{10 * time.Hour, 0, nil},
	} {
		s := DefaultSettings()
		s.MaxAge = row.maxAge
		if got := unusedImages(images, uses, row.need, s, now); !slices.Equal(got, row.want) {
			t.Errorf("of age %v, with %d bytes to free, it removes %v, want %v", row.maxAge, row.need, got, row.want)
		}
	}
	pinned := []runtime.Image{{ID: "pinned", Pinned: true}, {ID: "used"}, {ID: "free"}}
	if got := unused(pinned, map[string]bool{"used": true}); len(got) != 1 || got[0].ID != "free" {
		t.Errorf("%v count as unused, want free alone", got)
	}
}

// From 85 percent on, images are removed until the file system is down to 80.
func TestToFree(t *testing.T) {
	for _, r := range []struct {
		total, free uint64
		high, low   int
		want        uint64
	}{
		{1000, 200, 85, 80, 0}, {1000, 151, 85, 80, 0}, {1000, 150, 85, 80, 50}, {1000, 149, 85, 80, 51},
		{1000, 0, 85, 80, 200}, {1000, 2000, 85, 80, 0}, {0, 0, 85, 80, 0}, {0, 10, 85, 80, 0},
		{1000, 0, 100, 100, 0}, {1000, 1, 100, 80, 0}, {1000, 0, 100, 0, 1000}, {1000, 140, 85, 90, 0},
		{1 << 50, 0, 85, 80, 1<<50 - (1<<50)/100*80},
	} {
		if got := toFree(r.total, r.free, r.high, r.low); got != r.want {
			t.Errorf("toFree(%d, %d, %d, %d) = %d, want %d", r.total, r.free, r.high, r.low, got, r.want)
		}
	}
}
