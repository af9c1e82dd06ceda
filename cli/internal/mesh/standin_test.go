package mesh

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Pods are removed from a node even if its network configuration is gone. If keel is killed meanwhile, the next
// run continues: another reset is clean, and after another init no Pod starts in the stand-in network.
func TestPodsGoWithoutANetwork(t *testing.T) {
	calls := 9
	for call := 1; call <= calls; call++ {
		for _, after := range []bool{false, true} {
			for _, next := range []string{"reset", "init"} {
				b := bedApart(t)
				b.mustInit(t)
				b.pod.Store(true)
				b.killedReset(t, call, after)
				if next == "init" {
					b.mustInit(t)
					b.expectNoNetwork(t)
				}
				if err := b.reset(t); err != nil {
					t.Errorf("killed at call %d, after %t, then %s: %v", call, after, next, err)
				}
				b.expectGone(t)
				b.expectNoNetwork(t)
				if b.pod.Load() {
					t.Errorf("killed at call %d, after %t, then %s: the Pod is left", call, after, next)
				}
			}
		}
	}
	b := bedApart(t)
	b.mustInit(t)
	b.pod.Store(true)
	if err := b.reset(t); err != nil || b.pod.Load() || len(b.calls) < calls {
		t.Errorf("never killed: %v, a Pod is left: %t, after %v", err, b.pod.Load(), b.calls)
	}
	b.expectNoNetwork(t)
}

// bedApart has ranges that no mesh of this machine chooses by default, so that a second init finds them free.
func bedApart(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	b.options.PodRange = ipv4("10.199.64.0/18")
	b.options.ServiceRange = ipv4("10.199.128.0/18")
	return b
}

// killedReset kills keel reset at a call of systemctl, before or after it is done.
func (b *bed) killedReset(t *testing.T, call int, after bool) {
	t.Helper()
	m := b.mesh()
	b.cut, b.after, b.killed = call, after, true
	defer func() {
		b.cut, b.after, b.killed = 0, false, false
		if reason, ok := recover().(error); !ok || !errors.Is(reason, errCut) {
			t.Errorf("reset was to be killed at call %d: %v", call, reason)
		}
	}()
	_ = Reset(t.Context(), m, false)
}

func (b *bed) expectNoNetwork(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(b.layout.Node("vm").CNI("conf"), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(b.layout.Node("vm").CNI("conf")); err != nil {
		t.Errorf("this test looks at the wrong folder: %v", err)
	}
}
