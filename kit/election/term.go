package election

import (
	"context"
	"sync"
)

// term is one attempt to lead: not begun, serving, or over. It settles the race between winning the Lease, which client-go
// tells from a goroutine of its own, and being told to stop.
type term struct {
	stop context.CancelFunc // ends the election
	done chan struct{}      // closed when lead has returned

	mu    sync.Mutex // guards what follows
	begun bool
	over  bool
	err   error
}

// serve runs lead unless the term is over already, and ends the election after it. lead's context ends with ctx or when
// the Lease is no longer held.
func (t *term) serve(ctx, held context.Context, lead func(context.Context) error) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.begun = true
	t.mu.Unlock()

	defer t.stop()
	defer close(t.done)
	leading, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(held, cancel)()
	err := lead(leading)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// abandon ends the election at once if lead has not begun; else lead's own context does it.
func (t *term) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		t.over = true
		t.stop()
	}
}

// end closes the term, waits for lead if it has begun, and returns its error.
func (t *term) end() (served bool, err error) {
	t.mu.Lock()
	t.over = true
	begun := t.begun
	t.mu.Unlock()
	if begun {
		<-t.done
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return begun, t.err
}
