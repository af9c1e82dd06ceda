package userns

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// SAF-097, SAF-101: after any sequence of calls, ranges are disjoint and above the host's own IDs.
func TestRangesNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool, held := NewPool(Default(4)), map[types.UID]Range{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			pod := types.UID(fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "pod")))
			if rapid.Bool().Draw(t, "release") {
				pool.Release(pod)
				delete(held, pod)
				continue
			}
			r, err := pool.Assign(pod)
			if err != nil {
				if len(held) != 4 {
					t.Fatalf("refused with %d of 4 in use", len(held))
				}
				continue
			}
			if old, ok := held[pod]; ok && old != r {
				t.Fatalf("pod %s moved from %v to %v", pod, old, r)
			}
			held[pod] = r
			for other, o := range held {
				if other != pod && o.First < r.First+r.Length && r.First < o.First+o.Length {
					t.Fatalf("%v of %s overlaps %v of %s", r, pod, o, other)
				}
			}
			if r.First < 65536 || r.Length != 65536 {
				t.Fatalf("range %v", r)
			}
		}
	})
}

// SAF-097: records found at start-up keep their ranges; contradicting ones are refused.
func TestRestore(t *testing.T) {
	pool := NewPool(Range{First: 131072, Length: 3 * Length})
	if err := pool.Restore("a", Range{131072, Length}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []Range{{131072, Length}, {65536, Length}, {131072 + 1, Length}, {131072, 10},
		{131072 + 3*Length, Length}} {
		if err := pool.Restore("b", bad); err == nil {
			t.Errorf("%v was restored", bad)
		}
	}
	if r, err := pool.Assign("c"); err != nil || r.First != 131072+Length {
		t.Errorf("got %v, %v", r, err)
	}
}

// SAF-103, SAF-104, SAF-105, SAF-106
func TestCustom(t *testing.T) {
	const good = "root:100:5\nkubelet:65536:7208960\n"
	if r, ok, err := Custom(good, good, 110); err != nil || !ok || r != (Range{65536, 7208960}) {
		t.Fatalf("got %v, %v, %v", r, ok, err)
	}
	if _, ok, err := Custom("root:1:2\n", "", 110); ok || err != nil {
		t.Fatalf("without a line for the user: %v, %v", ok, err)
	}
	for name, pair := range map[string][2]string{
		"only groups":      {"", "kubelet:65536:7208960"},
		"two group lines":  {"kubelet:65536:7208960", "kubelet:65536:7208960\nkubelet:65536000:7208960"},
		"start 0":          {"kubelet:0:7208960", "kubelet:0:7208960"},
		"start 65537":      {"kubelet:65537:7208960", "kubelet:65537:7208960"},
		"too few":          {"kubelet:65536:7143424", "kubelet:65536:7143424"},
		"odd count":        {"kubelet:65536:7208961", "kubelet:65536:7208961"},
		"two lines":        {"kubelet:65536:7208960\nkubelet:65536000:7208960", "kubelet:65536:7208960"},
		"differing":        {"kubelet:65536:7208960", "kubelet:131072:7208960"},
		"only users":       {"kubelet:65536:7208960", ""},
		"not a number":     {"kubelet:x:7208960", "kubelet:x:7208960"},
		"missing field":    {"kubelet:65536", "kubelet:65536"},
		"beyond the limit": {"kubelet:4294901760:7208960", "kubelet:4294901760:7208960"},
	} {
		if _, _, err := Custom(pair[0], pair[1], 110); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// SAF-097: a released range is assigned again, the lowest first, and no more than there are.
func TestAssignTakesTheLowest(t *testing.T) {
	pool := NewPool(Range{First: 131072, Length: 3 * 65536})
	for i, want := range []uint32{131072, 196608, 262144} {
		if r, err := pool.Assign(types.UID(fmt.Sprint(i))); err != nil || r != (Range{want, 65536}) {
			t.Fatalf("Pod %d got %v, %v; want %d", i, r, err, want)
		}
	}
	if r, err := pool.Assign("more"); err == nil ||
		err.Error() != "all 3 user namespace ID ranges of this node are in use" {
		t.Errorf("a fourth of three ranges: %v, %v", r, err)
	}
	if r, err := pool.Assign("1"); err != nil || r.First != 196608 {
		t.Errorf("asked again it got %v, %v", r, err)
	}
	pool.Release("2")
	pool.Release("0")
	if r, err := pool.Assign("more"); err != nil || r.First != 131072 {
		t.Errorf("of two free ranges it got %v, %v", r, err)
	}
}

// SAF-097: the first and the last piece of the node's range can be restored, and a Pod's own again.
func TestRestoreBounds(t *testing.T) {
	for name, row := range map[string]struct {
		first uint32
		want  bool
	}{
		"the first": {131072, true}, "the last": {262144, true}, "before the first": {65536, false},
		"behind the last": {327680, false}, "between two": {131072 + 32768, false},
	} {
		pool := NewPool(Range{First: 131072, Length: 3 * 65536})
		for range 2 {
			if err := pool.Restore("a", Range{row.first, 65536}); (err == nil) != row.want {
				t.Errorf("%s: %v, want it restored: %v", name, err, row.want)
			}
		}
	}
	top := NewPool(Range{First: 1<<32 - 65536, Length: 65536})
	if err := top.Restore("a", Range{1<<32 - 65536, 65536}); err != nil {
		t.Errorf("the largest IDs of all: %v", err)
	}
}

func TestDefault(t *testing.T) {
	if got := Default(110); got != (Range{First: 65536, Length: 7208960}) {
		t.Errorf("for 110 Pods: %v", got)
	}
}

// SAF-103 SAF-104: values just within the bounds are accepted.
func TestCustomBounds(t *testing.T) {
	for name, row := range map[string]struct {
		list string
		want Range
		err  string
	}{
		"the lowest start":          {"kubelet:65536:65536", Range{65536, 65536}, ""},
		"a higher one":              {"kubelet:131072:65536", Range{131072, 65536}, ""},
		"below the lowest":          {"kubelet:65535:65536", Range{}, "is 65535: it must be a multiple of 65536"},
		"between two multiples":     {"kubelet:98304:65536", Range{}, "is 98304"},
		"more than enough":          {"kubelet:65536:131072", Range{65536, 131072}, ""},
		"one too few":               {"kubelet:65536:65535", Range{}, "has 65535 subordinate IDs"},
		"one too many":              {"kubelet:65536:65537", Range{}, "has 65537 subordinate IDs"},
		"none":                      {"kubelet:65536:0", Range{}, "has 0 subordinate IDs"},
		"up to the largest ID":      {"kubelet:4294901760:65536", Range{4294901760, 65536}, ""},
		"one Pod beyond it":         {"kubelet:4294901760:131072", Range{}, "end beyond the largest ID"},
		"of other users too":        {"a:1:1\n kubelet:65536:65536 \nkubelet2:5:5\n", Range{65536, 65536}, ""},
		"a count that is no number": {"kubelet:65536:many", Range{}, "subuid: count in"},
		"a start that is none":      {"kubelet:low:65536", Range{}, "subuid: first ID in"},
		"a field too many":          {"kubelet:65536:65536:1", Range{}, "must be user:first:count"},
		"an ID beyond 32 bits":      {"kubelet:4294967296:65536", Range{}, "subuid: first ID in"},
	} {
		got, ok, err := Custom(row.list, row.list, 1)
		if row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)) {
			t.Errorf("%s: error %v, want %q", name, err, row.err)
		}
		if row.err == "" && (err != nil || !ok || got != row.want) {
			t.Errorf("%s: %v, found %v, error %v; want %v", name, got, ok, err, row.want)
		}
	}
	const few = "kubelet:65536:65536"
	want := "user kubelet has 65536 subordinate IDs: the number must be a multiple of 65536 and at least 131072 for " +
		"2 Pods"
	if _, _, err := Custom(few, few, 2); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if _, _, err := Custom(few, "kubelet:65536", 1); err == nil || !strings.Contains(err.Error(), "subgid: ") {
		t.Errorf("a wrong list of groups: %v", err)
	}
}
