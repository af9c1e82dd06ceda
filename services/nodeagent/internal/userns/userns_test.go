package userns

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// SAF-097, SAF-101: whatever is assigned, restored and released, ranges are disjoint and above the host's own IDs.
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
