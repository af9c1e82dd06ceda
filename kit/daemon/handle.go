package daemon

import "context"

// Handle is a daemon's work under way inside a process, its own or a test's.
type Handle struct {
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// Go starts the work, which goes on until ctx ends, Stop is called or it fails.
func Go(ctx context.Context, work func(context.Context) error) *Handle {
	ctx, stop := context.WithCancel(ctx)
	h := &Handle{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		defer stop()
		h.err = work(ctx)
	}()
	return h
}

// Done is closed when the work has stopped.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Wait returns when the work has stopped, with what went wrong.
func (h *Handle) Wait() error {
	<-h.done
	return h.err
}

// Stop ends the work and waits for it.
func (h *Handle) Stop() error {
	h.stop()
	return h.Wait()
}
