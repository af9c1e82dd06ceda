package election

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// term is one attempt to lead: not begun, serving, or over. It settles the race between winning the Lease, which
// client-go reports from a goroutine of its own, and being told to stop, and it knows how long the Lease is held for
// certain.
type term struct {
	role  string
	clock func() time.Duration
	stop  context.CancelFunc // ends the election
	done  chan struct{}      // closed when lead has returned

	mu    sync.Mutex    // guards what follows
	held  bool          // whether the server has taken a renewal
	last  time.Duration // when the last renewal that the server took was sent
	next  time.Duration // from when on the Lease is to be renewed
	until time.Duration // how long the leader relies on the Lease
	timer *time.Timer   // ends the term then
	lost  bool          // for good: a Lease that is won back begins another term
	begun bool
	over  bool
	quit  context.CancelFunc // ends lead's context
	err   error
}

// serve runs lead unless the term is over already, and ends the election after it. lead's context ends with ctx or when
// the Lease is no longer held.
func (t *term) serve(ctx, held context.Context, lead func(context.Context) error) {
	leading, quit := context.WithCancel(context.WithValue(ctx, termKey{}, t))
	defer quit()
	t.mu.Lock()
	if t.over || t.lost {
		t.mu.Unlock()
		return
	}
	t.begun, t.quit = true, quit
	t.mu.Unlock()

	defer t.stop()
	defer close(t.done)
	defer context.AfterFunc(held, quit)()
	err := lead(leading)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost, t.err = true, err
}

// yield ends the term while its Lease is held: lead's context ends, and the Lease is renewed until lead has returned.
func (t *term) yield() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun {
		t.quit()
		return
	}
	t.over = true
	t.stop()
}

// lose ends lead's context at once, and with it the term.
func (t *term) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = true
	if t.quit != nil {
		t.quit()
		return
	}
	t.stop()
}

// soonest is how long after one renewal the next may be tried at the earliest.
func soonest(period time.Duration) time.Duration { return period - period/8 }

// due reports whether to renew the Lease now. Renewals are tried at a fixed period: the one nearest to the time at
// which the Lease is due counts.
func (t *term) due(now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.held || now >= t.next
}

// apart is how long a renewal that is due now waits for those of the process's other roles, which all begin at the
// multiples of the period by the elector's clock. One that is a little late does not wait for the next, and none waits
// until more than two periods have passed since the last that the server took.
func (t *term) apart(now, period time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait := period - now%period
	if wait >= period-period/4 || !t.held || now+wait > t.last+2*period {
		return 0
	}
	return wait
}

// renewing notes that a renewal is being sent. A standby may see it even if the answer does not come back here, so a
// renewal for a shorter time shortens the term at once.
func (t *term) renewing(sent time.Duration, timing Timing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		t.until = min(t.until, sent+timing.RenewDeadline)
	}
}

// renewed notes that the server took a renewal. A standby cannot have seen it before it was sent, so the Lease holds
// for its whole duration from then on; the time between the deadline and that is left to writes that are on their way.
func (t *term) renewed(sent time.Duration, timing Timing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.last, t.next = true, sent, sent+soonest(timing.RetryPeriod)
	t.until = sent + timing.RenewDeadline
	if t.over {
		return
	}
	if wait := t.until - t.clock(); t.timer == nil {
		t.timer = time.AfterFunc(wait, func() { _ = t.check() })
	} else {
		t.timer.Reset(wait)
	}
}

func (t *term) serving() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun
}

// check says why nothing may be written in this term's name; nil means that it may. A term whose Lease has run out
// unnoticed, because the process slept, ends here.
func (t *term) check() error {
	t.mu.Lock()
	now := t.clock()
	age, over, lost := now-t.last, now >= t.until, t.lost
	t.mu.Unlock()
	switch {
	case lost:
		return fmt.Errorf("%w %s any more", ErrNotLeading, t.role)
	case over:
		t.lose()
		return fmt.Errorf("%w %s any more: the Lease was last renewed %v ago", ErrNotLeading, t.role,
			age.Round(time.Millisecond))
	}
	return nil
}

// end closes the term, waits for lead if it has begun, and returns its error.
func (t *term) end() (served bool, err error) {
	t.mu.Lock()
	t.over = true
	begun := t.begun
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	if begun {
		<-t.done
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return begun, t.err
}
