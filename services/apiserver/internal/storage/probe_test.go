package storage

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A store is asked once in an interval, however many want to know.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		var answer error
		asked := 0
		p := newProbe(func(context.Context) error {
			asked++
			return answer
		})
		for _, row := range []struct {
			name   string
			after  time.Duration
			answer error
			want   error
			asked  int
		}{
			{"the first", 0, nil, nil, 1},
			{"within the interval", healthProbeInterval - 1, down, nil, 1},
			{"after it", 1, down, down, 2},
			{"within the next", healthProbeInterval - 1, nil, down, 2},
			{"after that", 1, nil, nil, 3},
		} {
			time.Sleep(row.after)
			answer = row.answer
			if err := p.check(); !errors.Is(err, row.want) || asked != row.asked {
				t.Errorf("%s: %v, asked %d times, want %v and %d", row.name, err, asked, row.want, row.asked)
			}
		}
	})
}

// A store that hangs holds up no caller for longer than it has to answer, and only one caller within an interval;
// before its first answer it does not count as healthy.
func TestProbeOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		begun := time.Now()
		var waiting sync.WaitGroup
		defer waiting.Wait()
		waiting.Go(func() {
			if err := p.check(); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != healthProbeLimit {
				t.Errorf("who asked was told %v after %v", err, time.Since(begun))
			}
		})
		synctest.Wait()
		if err := p.check(); !errors.Is(err, errNotAsked) || time.Since(begun) != 0 {
			t.Errorf("who came meanwhile was told %v after %v", err, time.Since(begun))
		}
		time.Sleep(healthProbeLimit)
		synctest.Wait()
		waiting.Go(func() { _ = p.check() })
		synctest.Wait()
		if err := p.check(); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != healthProbeLimit {
			t.Errorf("who came later was told %v after %v", err, time.Since(begun))
		}
	})
}

// An answer that comes late does not take the place of the answer to a later question.
func TestProbeKeepsTheLatestAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p := newProbe(func(ctx context.Context) error {
			if asked++; asked == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		var waiting sync.WaitGroup
		waiting.Go(func() { _ = p.check() })
		synctest.Wait()
		time.Sleep(healthProbeInterval)
		if err := p.check(); err != nil {
			t.Fatal(err)
		}
		waiting.Wait() // as late as healthProbeLimit after the beginning
		p.asked = time.Now()
		if err := p.check(); err != nil {
			t.Errorf("the answer to the question before is told: %v", err)
		}
	})
}
