package backup

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestNameAt(t *testing.T) {
	at := time.Date(2026, 3, 1, 1, 30, 5, 999, time.FixedZone("CET", 3600))
	if name := nameAt(at); name != "store-20260301T003005Z.snapshot" || !ownName.MatchString(name) {
		t.Error(name)
	}
}

// snapshotOf is a snapshot of a store as it lies in the folder.
func snapshotOf(store string, day int) kept {
	name := fmt.Sprintf("store-202603%02dT000000Z.snapshot", day)
	return kept{name: name, bytes: 512, record: &Record{File: name, Bytes: 512, Store: store}}
}

// TestExpired: only what is proven to be a snapshot of this store may go, the oldest first.
func TestExpired(t *testing.T) {
	const made = "store-20260309T000000Z.snapshot"
	change := func(day int, how func(*kept)) kept {
		k := snapshotOf("a", day)
		how(&k)
		return k
	}
	all := []kept{
		snapshotOf("a", 3), snapshotOf("a", 9), snapshotOf("a", 1), snapshotOf("a", 2),
		snapshotOf("b", 4),
		change(5, func(k *kept) { k.record = nil }),
		change(6, func(k *kept) { k.bytes++ }),
		change(7, func(k *kept) { k.record.File = "store-20260301T000000Z.snapshot" }),
		change(8, func(k *kept) { k.name = "mine.snapshot"; k.record.File = k.name }),
		change(8, func(k *kept) { k.name += ".old"; k.record.File = k.name }),
	}
	name := func(day int) string { return snapshotOf("a", day).name }
	for keep, want := range map[int][]string{
		0: nil, -1: nil,
		1: {name(3), name(2), name(1)},
		2: {name(2), name(1)},
		3: {name(1)},
		4: nil, 5: nil,
	} {
		if got := expired(all, "a", made, keep); !slices.Equal(got, want) {
			t.Errorf("--keep %d: %v, want %v", keep, got, want)
		}
	}
	// A clock that was ahead: the one that was just made is the oldest by its name, and stays.
	if got := expired(all, "a", name(1), 1); slices.Contains(got, name(1)) || len(got) != 3 {
		t.Errorf("%v", got)
	}
}
