package usage

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// agents answer in the bubble of a test.
type agents struct {
	asked  atomic.Int32
	most   atomic.Int32
	active atomic.Int32
	takes  time.Duration
	fails  atomic.Bool
}

func (a *agents) ask(ctx context.Context, node string) (*Reading, error) {
	a.asked.Add(1)
	a.most.Store(max(a.most.Load(), a.active.Add(1)))
	defer a.active.Add(-1)
	takes := a.takes
	if node == "silent" {
		takes = time.Hour
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.fails.Load() {
		return nil, errors.New("no")
	}
	return &Reading{At: time.Now(), Node: Sample{At: time.Now(), hasCPU: true, hasMemory: true}}, nil
}

func pass(d time.Duration) { <-time.After(d) }

// However many want to know at once, an agent is asked once; for a rate twice, and once for the next.
func TestOneQuestionForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agents{takes: 100 * time.Millisecond}
		s := NewSource(a.ask)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if usage, ok := s.Of(t.Context(), []string{"n"})["n"].Node(); !ok || usage.Window < time.Second {
					t.Errorf("no rate: %+v", usage)
				}
			})
		}
		all.Wait()
		if got := a.asked.Load(); got != 2 {
			t.Errorf("50 at once asked %d times, want 2", got)
		}
		pass(10 * time.Second)
		s.Of(t.Context(), []string{"n"})
		if got := a.asked.Load(); got != 2 {
			t.Errorf("what is fresh was asked for: %d", got)
		}
		pass(5 * time.Second)
		s.Of(t.Context(), []string{"n"})
		if got := a.asked.Load(); got != 3 {
			t.Errorf("the next rate took %d questions, want 1", got-2)
		}
		pass(time.Hour)
		if got := a.asked.Load(); got != 3 {
			t.Errorf("nobody asked, and agents were asked %d times", got-3)
		}
	})
}

// An agent that does not answer costs its own node's figures and a bounded time, and is left alone for a while.
func TestSilentAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agents{}
		s := NewSource(a.ask)
		start := time.Now()
		got := s.Of(t.Context(), []string{"silent", "n"})
		if _, ok := got["n"].Node(); !ok || len(got) != 1 {
			t.Errorf("got %v", got)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("took %s", took)
		}
		start = time.Now()
		s.Of(t.Context(), []string{"silent", "n"})
		if took := time.Since(start); took != 0 || a.asked.Load() != 3 {
			t.Errorf("right after: %s, %d questions", took, a.asked.Load())
		}
	})
}

// Agents are asked side by side, but not all at once, and an answer waits for all of them together only so long.
func TestManyAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agents{takes: time.Hour}
		s := NewSource(a.ask)
		names := make([]string, 1000)
		for i := range names {
			names[i] = string(rune('a' + i))
		}
		start := time.Now()
		if got := s.Of(t.Context(), names); len(got) != 0 {
			t.Errorf("got %d", len(got))
		}
		if took := time.Since(start); took != 14*time.Second || a.most.Load() != 128 {
			t.Errorf("took %s, %d at once", took, a.most.Load())
		}
		pass(time.Hour)
	})
}

// Who asked first may leave: the others still get the answer.
func TestFirstLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agents{takes: time.Second}
		s := NewSource(a.ask)
		ctx, leave := context.WithCancel(t.Context())
		go s.Of(ctx, []string{"n"})
		pass(500 * time.Millisecond)
		leave()
		if _, ok := s.Of(t.Context(), []string{"n"})["n"].Node(); !ok {
			t.Error("no answer")
		}
	})
}

// Nodes that clients no longer request are forgotten.
func TestForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSource((&agents{}).ask)
		s.Of(t.Context(), []string{"gone"})
		pass(3 * time.Minute)
		s.Of(t.Context(), []string{"n"})
		if len(s.nodes) != 1 {
			t.Errorf("%d nodes are kept, want 1", len(s.nodes))
		}
	})
}

// What breaks off while an agent is asked costs its own node's figures, and it is left alone for a while.
func TestAgentBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agents{}
		broken := 0
		s := NewSource(func(ctx context.Context, node string) (*Reading, error) {
			if node == "broken" {
				broken++
				panic("no such case")
			}
			return a.ask(ctx, node)
		})
		for range 2 {
			start := time.Now()
			got := s.Of(t.Context(), []string{"broken", "n"})
			if _, ok := got["n"].Node(); !ok || len(got) != 1 || time.Since(start) > between {
				t.Errorf("got %v after %s", got, time.Since(start))
			}
		}
		if len(s.slots) != 0 || broken != 1 {
			t.Errorf("%d agents are being asked, the broken one was %d times", len(s.slots), broken)
		}
	})
}
