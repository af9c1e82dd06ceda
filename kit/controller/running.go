package controller

import "context"

// Running is a group at work.
type Running struct {
	group *Group
	stop  context.CancelFunc
	done  chan struct{}
	err   error
}

// Start runs the controllers until ctx ends or Stop is called. It returns at once; Wait tells how it ends.
func Start(ctx context.Context, o Options) (*Running, error) {
	group, err := New(o)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	r := &Running{group: group, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = group.Run(ctx)
	}()
	return r, nil
}

// Ready says why the controllers cannot work yet; nil when they can.
func (r *Running) Ready() error { return r.group.Synced() }

// Wait returns when all controllers have stopped and their Leases are given up, with the reason if that came by itself.
func (r *Running) Wait() error {
	<-r.done
	return r.err
}

// Stop ends the controllers and waits for them.
func (r *Running) Stop() error {
	r.stop()
	return r.Wait()
}
