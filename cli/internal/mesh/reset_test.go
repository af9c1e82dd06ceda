package mesh

import (
	"os"
	"strings"
	"testing"

	"keelson.dev/cli/internal/state"
)

func (b *bed) reset(t *testing.T) error { return Reset(t.Context(), b.mesh(), false) }

func (b *bed) expectGone(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(b.dir)
	if err != nil || len(left) > 0 || len(b.enabled) > 0 || len(b.running) > 0 || len(b.loaded) > 0 {
		t.Errorf("left are files %v (%v), enabled %v, running %s, known %d", left, err, b.enabled, b.pids(),
			len(b.loaded))
	}
	if _, err := os.Stat(b.layout.PKI("ca.key")); err != nil {
		t.Errorf("the data is gone: %v", err)
	}
}

// The agent stops first, the apiserver last, and no unit starts with the machine any more.
func TestResetInItsOrder(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	if err := b.reset(t); err != nil {
		t.Fatal(err)
	}
	b.expectGone(t)
	var stopped []string
	for _, call := range b.calls {
		if unit, ok := strings.CutPrefix(call, "stop keelson-"); ok {
			stopped = append(stopped, strings.TrimSuffix(unit, ".service"))
		}
	}
	if got := strings.Join(stopped, " "); got != "nodeagent containerd scheduler workload-controllers podgc apiserver" {
		t.Errorf("stopped were %s", got)
	}
	if !strings.Contains(b.out.String(), "are kept in "+b.layout.Dir) {
		t.Errorf("it said\n%s", b.out.String())
	}
	if err := b.reset(t); err != nil {
		t.Errorf("again: %v", err)
	}
	b.mustInit(t)
}

// The next reset completes one that is interrupted at any call.
func TestResetIsCutOff(t *testing.T) {
	for call := 1; ; call++ {
		b := newBed(t)
		b.mustInit(t)
		b.calls = nil
		if !b.cutAt(t, call, false, b.reset) {
			if call < 9 {
				t.Errorf("it has %d calls only", call-1)
			}
			return
		}
		if err := b.reset(t); err != nil {
			t.Errorf("after call %d was cut off: %v", call, err)
		}
		b.expectGone(t)
	}
}

// The units are removed even if the record is missing.
func TestResetWithoutARecord(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	if err := os.Remove(b.layout.State()); err != nil {
		t.Fatal(err)
	}
	if err := b.reset(t); err != nil {
		t.Fatal(err)
	}
	b.expectGone(t)
}

func TestResetOfNothing(t *testing.T) {
	b := newBed(t)
	if err := os.RemoveAll(b.layout.Dir); err != nil {
		t.Fatal(err)
	}
	err := b.reset(t)
	if err != nil || !strings.Contains(b.out.String(), "nothing was initialized in") || len(b.calls) > 0 {
		t.Errorf("got %v, %s, %v", err, b.out.String(), b.calls)
	}
	if _, err := os.Stat(b.layout.Dir); err == nil {
		t.Error("it made the folder")
	}
}

// Others' meshes and units are not touched.
func TestResetLeavesOthers(t *testing.T) {
	b := newBed(t)
	b.mustInit(t)
	other := newBed(t)
	other.fakeSystemd = b.fakeSystemd
	if err := other.reset(t); err != nil {
		t.Fatal(err)
	}
	b.expect(t)
	b.record(t, func(s *state.State) { s.Units = false })
	if err := b.reset(t); err == nil || !strings.Contains(err.Error(), "holds a mesh of keel up: keel down ends it") {
		t.Errorf("got %v", err)
	}
	b.expect(t)
}
