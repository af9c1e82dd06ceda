package class

import (
	"fmt"
	"testing"
	"unsafe"

	"keelson.dev/services/scheduler/internal/rulestest"
)

// An index takes 20 bytes for a node; 256 MiB of them may be kept.
func TestMemoryOfVerdicts(t *testing.T) {
	if got := unsafe.Sizeof(node{}) + unsafe.Sizeof(item{}); got != 20 {
		t.Errorf("a node takes %d bytes", got)
	}
	if got := NewSet().room; got != 256<<20/20 {
		t.Errorf("%d entries may be kept", got)
	}
}

// With every 1,024th question the indexes of classes without Pods go in which more changed than there are nodes.
func TestStaleIndexesGo(t *testing.T) {
	const nodes = 10
	for changes, stale := range map[int]bool{0: false, 9: false, 10: false, 11: true, 50: true} {
		t.Run(fmt.Sprint(changes), func(t *testing.T) {
			f := newSetFixture(nodes)
			idle, busy := f.join("idle"), f.join("busy")
			for _, c := range []*Class{idle, busy} {
				if n := c.Feasible(f.state); n != nodes {
					t.Fatalf("%d nodes are feasible", n)
				}
			}
			f.Leave(idle)
			before, u := f.state.Version(), f.state.Usage(rulestest.Pod("x"))
			for f.state.Version() < before+uint64(changes) {
				if f.state.SetPod(rulestest.Identified("x"), "n3", u); f.state.Version() < before+uint64(changes) {
					f.state.RemovePod("x")
				}
			}
			asked := f.join("asked")
			for range 1023 {
				f.Touch(asked, f.state)
			}
			if idle.index == nil || busy.index == nil {
				t.Fatal("an index is gone before the 1,024th question")
			}
			f.Touch(asked, f.state)
			if got := idle.index == nil; got != stale {
				t.Errorf("the index is gone: %v, want %v", got, stale)
			}
			if busy.index == nil {
				t.Error("the index of a class with Pods is gone")
			}
			if n := idle.Feasible(f.state); n != nodes {
				t.Errorf("%d nodes are feasible afterwards", n)
			}
		})
	}
}
