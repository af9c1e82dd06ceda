package wakeup

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func (s Signal) waits() bool {
	select {
	case <-s:
		return true
	default:
		return false
	}
}

// Signals before a receive wake once, and a signal after that wakes again.
func TestSentTogetherWakesOnce(t *testing.T) {
	s := New()
	if s.waits() {
		t.Error("it wakes before anything was sent")
	}
	for range 3 {
		s.Send()
	}
	if !s.waits() || s.waits() {
		t.Error("three sent together wake not once")
	}
	if s.Send(); !s.waits() {
		t.Error("what is sent later does not wake")
	}
}

// A receiver that looks for all there is to do misses nothing, however many send.
func TestNothingIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		var todo, done atomic.Int64
		go func() {
			for range s {
				done.Add(todo.Swap(0))
			}
		}()
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				for range 1000 {
					todo.Add(1)
					s.Send()
				}
			})
		}
		senders.Wait()
		synctest.Wait()
		close(s)
		if done.Load() != 8000 {
			t.Errorf("%d of 8000 were done", done.Load())
		}
	})
}
