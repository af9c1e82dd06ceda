package election

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// timedLock is the Lease as client-go's elector sees it, which tries to renew it a little more often than at every
// RetryPeriod of the plan. It notifies the term of each renewal, writes how long the Lease lasts at the elector's pace,
// skips renewals that are not due at the pace at which the last one was sent, and lets those of all roles of the
// process begin at the same moment: an idle mesh does little else than to renew its Leases, and what goes together
// costs a fraction.
type timedLock struct {
	*leaseLock

	elector   *Elector
	term      *term
	candidacy *candidacy
}

// Get implements resourcelock.Interface. A leader that reads of another one leads no more; client-go would go on trying
// until the deadline of its renewal. A fallback that reads of a preferred candidate gives way.
func (l timedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	switch lease := l.view(); {
	case lease.holder != l.identity && l.term.serving():
		l.term.lose()
	case !l.candidacy.mayStand(lease, l.elector.stretch()):
		l.term.yield()
	case l.candidacy.asks(lease):
		// A candidate that is refused asks again at the next look.
		_ = l.elector.timed(ctx, func(ctx context.Context, _ time.Duration, _ Timing) error { return l.ask(ctx) })
	}
	return record, raw, nil
}

// look reads the Lease and keeps in mind what it said.
func (l timedLock) look(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = l.elector.timed(ctx, func(ctx context.Context, _ time.Duration, _ Timing) error {
		record, raw, err = l.leaseLock.Get(ctx)
		return err
	})
	if err == nil {
		l.candidacy.see(l.view(), l.elector.clock(), l.elector.stretch())
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l timedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(ctx, record, l.leaseLock.Create)
}

// Update implements resourcelock.Interface.
func (l timedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	now := l.elector.clock()
	if !l.term.due(now) {
		return nil
	}
	if apart := l.term.apart(now, l.elector.Timing.RetryPeriod); apart > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(apart):
		}
		record.RenewTime = metav1.Now()
	}
	return l.renew(ctx, record, l.leaseLock.Update)
}

func (l timedLock) renew(ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	// client-go takes a Lease also when the election has just ended.
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.elector.timed(ctx, func(ctx context.Context, sent time.Duration, timing Timing) error {
		record.LeaseDurationSeconds = int(timing.LeaseDuration / time.Second)
		l.term.renewing(sent, timing)
		if err := write(ctx, record); err != nil {
			return err
		}
		l.term.renewed(sent, timing)
		return nil
	})
}

// timed sends one request for a Lease and learns from how long it took. A renewal that hangs longer than half its
// deadline is worth nothing.
func (e *Elector) timed(ctx context.Context,
	send func(ctx context.Context, sent time.Duration, timing Timing) error) error {
	timing, sent := e.timing(), e.clock()
	attempt, cancel := context.WithTimeout(ctx, timing.RenewDeadline/2)
	defer cancel()
	err := send(attempt, sent, timing)
	if ctx.Err() != nil {
		// The caller no longer waited for the answer.
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pace = e.pace.after(sent, e.clock(), err != nil, e.Timing)
	return err
}

// timing is that of the present pace.
func (e *Elector) timing() Timing { return e.Timing.stretched(e.stretch()) }

func (e *Elector) stretch() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pace.stretch
}
