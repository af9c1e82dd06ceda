package election

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// term is one attempt to lead: not begun, serving, or over. It settles the race between winning the Lease, which
// client-go tells from a goroutine of its own, and being told to stop, and it knows how long the Lease is held for
// certain.
type term struct {
	role   string
	clock  func() time.Duration
	safely time.Duration      // how long a renewal is relied upon, counted from when it was sent
	stop   context.CancelFunc // ends the election
	done   chan struct{}      // closed when lead has returned

	mu      sync.Mutex    // guards what follows
	renewed time.Duration // when the last renewal that the server took was sent
	lost    bool          // for good: a Lease that is won back begins another term
	begun   bool
	over    bool
	quit    context.CancelFunc // ends lead's context
	err     error
}

// serve runs lead unless the term is over already, and ends the election after it. lead's context ends with ctx or when
// the Lease is no longer held.
func (t *term) serve(ctx, held context.Context, lead func(context.Context) error) {
	leading, quit := context.WithCancel(context.WithValue(ctx, termKey{}, t))
	defer quit()
	t.mu.Lock()
	if t.over {
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

// abandon ends the election at once if lead has not begun; else lead's own context does it.
func (t *term) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		t.over = true
		t.stop()
	}
}

// lose ends lead's context at once, and with it the term.
func (t *term) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = true
	if t.quit != nil {
		t.quit()
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
	age, lost := t.clock()-t.renewed, t.lost
	t.mu.Unlock()
	switch {
	case lost:
		return fmt.Errorf("%w %s any more", ErrNotLeading, t.role)
	case age >= t.safely:
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
	t.mu.Unlock()
	if begun {
		<-t.done
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return begun, t.err
}

// timedLock is the Lease as client-go's elector sees it. It tells the term of each renewal: a standby cannot have seen
// the renewal before it was sent, so the Lease holds for its whole duration from then on.
type timedLock struct {
	resourcelock.Interface
	term *term
}

// Get implements resourcelock.Interface. A leader that reads of another one leads no more; client-go would go on trying
// until the deadline of its renewal.
func (l timedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() && l.term.serving() {
		l.term.lose()
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l timedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.timed(func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l timedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.timed(func() error { return l.Interface.Update(ctx, record) })
}

func (l timedLock) timed(write func() error) error {
	sent := l.term.clock()
	if err := write(); err != nil {
		return err
	}
	l.term.mu.Lock()
	defer l.term.mu.Unlock()
	l.term.renewed = sent
	return nil
}
