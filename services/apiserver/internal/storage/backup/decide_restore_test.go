package backup

import (
	"strings"
	"testing"
	"time"

	"keelson.dev/services/apiserver/internal/storage/storedir"
)

func TestDecideRestore(t *testing.T) {
	base := found{paths: storedir.Of("/d"), file: "/b/s", snapshot: Content{Revision: 10, Identity: "a"}}
	rows := map[string]struct {
		change func(*found)
		want   restorePlan
		refuse string
	}{
		"a new directory":          {func(*found) {}, restorePlan{}, ""},
		"the store was moved away": {func(f *found) { f.identity = "a" }, restorePlan{}, ""},
		"a store is there": {func(f *found) { f.identity, f.store = "a", true }, restorePlan{},
			"/d/etcd holds a store already: with --replace"},
		"it is replaced": {func(f *found) { f.identity, f.store, f.replace = "a", true, true },
			restorePlan{aside: true}, ""},
		"nothing is there to replace": {func(f *found) { f.replace = true }, restorePlan{}, ""},
		"of another mesh": {func(f *found) { f.identity, f.replace, f.store = "b", true, true }, restorePlan{},
			"/b/s is of the mesh a, but /d/identity says b: with --other-mesh"},
		"of another mesh, on purpose": {func(f *found) {
			f.identity, f.replace, f.store, f.otherMesh = "b", true, true, true
		}, restorePlan{aside: true, forget: true}, ""},
		"of another mesh, but a store is there": {func(f *found) { f.identity, f.store, f.otherMesh = "b", true, true },
			restorePlan{}, "/d/etcd holds a store already"},
		"of the same mesh, whatever is said": {
			func(f *found) { f.identity, f.otherMesh = "a", true },
			restorePlan{},
			"",
		},
		"of a cluster that says of no mesh": {func(f *found) { f.identity, f.snapshot.Identity = "b", "" },
			restorePlan{}, ""},
		"the store is a cluster": {func(f *found) {
			f.moved, f.replace = &storedir.Moved{Servers: []string{"http://e"}}, true
		}, restorePlan{}, "the mesh's store is the etcd cluster at http://e, as /d/moved says"},
		"a directory that is of no mesh yet": {func(f *found) { f.otherMesh = true }, restorePlan{}, ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			f := base
			row.change(&f)
			got, err := decideRestore(f)
			if row.refuse != "" {
				if err == nil || !strings.HasPrefix(err.Error(), row.refuse) {
					t.Errorf("%v, want %q", err, row.refuse)
				}
				return
			}
			if row.want.bump = revisionGap; err != nil || got != row.want {
				t.Errorf("%+v, %v, want %+v", got, err, row.want)
			}
		})
	}
}

// A restored store begins beyond every revision that a client may have seen.
func TestBump(t *testing.T) {
	second := time.Unix(1, 0)
	for _, row := range []struct {
		name             string
		snapshot, before int64
		now              time.Time
		want             int64
	}{
		{"the first", 5, 0, second, 5 + revisionGap},
		{"the store that was there is ahead", 5, 900, second, 900 + revisionGap},
		{"it was restored before", 5, revisionGap + 900, second, 2*revisionGap + 900},
		{"it is behind", 900, 5, second, 900 + revisionGap},
		{"it is gone: just below", 5, 0, time.UnixMilli(revisionGap + 5), revisionGap + 5},
		{"it is gone: just beyond", 5, 0, time.UnixMilli(revisionGap + 6), revisionGap + 6},
		{"a clock before 1970", 5, 0, time.Unix(-9, 0), 5 + revisionGap},
	} {
		if got := row.snapshot + int64(bump(row.snapshot, row.before, row.now)); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
	// Two restores of one snapshot, the store moved away by hand before the second.
	first := 5 + int64(bump(5, 0, time.UnixMilli(1_790_000_000_000)))
	later := 5 + int64(bump(5, 0, time.UnixMilli(1_790_000_060_000)))
	if later <= first+1000 {
		t.Errorf("restored at %d, a minute later at %d", first, later)
	}
}
