package storage

import (
	"context"
	"errors"
	"sync"
	"time"
)

// healthProbeInterval is how soon a store is asked again whether it answers, as with the library's own check.
const healthProbeInterval = healthProbeLimit / 2

var errNotAsked = errors.New("the store has not answered yet")

// probe reports whether the store answers. It asks once in an interval, however many callers want to know, and gives
// the store its time to answer; meanwhile other callers get the last answer. So a store that hangs does not get more
// and more requests, and no caller waits for it longer than that time.
type probe struct {
	ask func(context.Context) error

	mu sync.Mutex // guards what follows
	// asked is when the store was last asked, and answered the asking of which last is the answer.
	asked, answered time.Time
	last            error
}

func newProbe(ask func(context.Context) error) *probe { return &probe{ask: ask, last: errNotAsked} }

func (p *probe) check() error {
	now, due := p.begin()
	if !due {
		return p.latest()
	}
	// What comes of it is told to others, too: it does not end with the request that it is for.
	ctx, cancel := context.WithTimeout(context.Background(), healthProbeLimit)
	defer cancel()
	err := p.ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.answered) {
		p.answered, p.last = now, err
	}
	return err
}

// latest is what the store answered last.
func (p *probe) latest() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// begin reports whether the store is to be asked now.
func (p *probe) begin() (now time.Time, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now = time.Now()
	if now.Sub(p.asked) < healthProbeInterval {
		return now, false
	}
	p.asked = now
	return now, true
}
