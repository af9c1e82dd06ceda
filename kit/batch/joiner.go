package batch

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

const (
	// patience is how long a write waits at most for the answer to the one before it.
	patience = 2 * time.Millisecond
	// withoutBatches is how long writes go one by one to an apiserver that takes no batches. A new connection ends that
	// time: another apiserver may be at its end.
	withoutBatches = 5 * time.Minute
	// full is from how many bytes on a batch does not wait for more. With one more body it is below MaxBytes.
	full = MaxBytes / 4
)

// joiner decides which writes go together.
type joiner struct {
	may func(context.Context) error

	mu      sync.Mutex // guards what follows
	waiting []*call
	bytes   int // of what waits
	timer   *time.Timer
	// newest is the flight that was sent last, until it is answered.
	newest *flight
	// refused is the time until which no batch is tried.
	refused time.Time
}

// flight is a request on its way: a batch, or a single write.
type flight struct {
	sent time.Time
	// open counts the calls that still wait for their answers; cancel ends the request when none does. A single
	// write ends with its own context.
	open   int
	cancel context.CancelFunc
}

// call is a write that may go with others.
type call struct {
	request *http.Request
	item    Request
	next    http.RoundTripper
	outcome chan outcome // of one
	// flight is the batch that the call is in, until it is settled.
	flight *flight
	left   bool // the caller no longer waits for the outcome
}

// outcome is the result of a call: an answer, an error, or the flight as which the call is to be sent alone.
type outcome struct {
	response *http.Response
	err      error
	alone    *flight
}

// alone returns the flight of a write that need not wait; nil if it must.
func (j *joiner) alone() *flight {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) > 0 || j.newest != nil && time.Since(j.newest.sent) < patience {
		return nil
	}
	j.newest = &flight{sent: time.Now()}
	return j.newest
}

// enter lets a call wait.
func (j *joiner) enter(c *call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) > 0 && !alike(j.waiting[0].request, c.request) {
		j.release()
	}
	j.waiting = append(j.waiting, c)
	j.bytes += c.item.size()
	switch {
	case j.newest == nil, len(j.waiting) == MaxItems, j.bytes >= full:
		j.release()
	case len(j.waiting) == 1:
		f := j.newest
		j.timer = time.AfterFunc(patience-time.Since(f.sent), func() { j.ended(f) })
	}
}

// leave notes that the caller no longer waits for the call's outcome.
func (j *joiner) leave(c *call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c.left = true
	j.settled(c)
}

// settled removes the call from its flight. A flight without calls ends.
func (j *joiner) settled(c *call) {
	if c.flight == nil {
		return
	}
	if c.flight.open--; c.flight.open == 0 {
		c.flight.cancel()
	}
	c.flight = nil
}

// settle hands the call its outcome.
func (j *joiner) settle(c *call, o outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c.outcome <- o
	j.settled(c)
}

// ended sends the waiting calls, unless a newer flight is on its way.
func (j *joiner) ended(f *flight) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.newest != f {
		return
	}
	j.newest = nil
	if len(j.waiting) > 0 {
		j.release()
	}
}

// release sends the waiting calls.
func (j *joiner) release() {
	calls := j.waiting
	j.waiting, j.bytes = nil, 0
	if j.timer != nil {
		j.timer.Stop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &flight{sent: time.Now(), cancel: cancel}
	j.newest = f
	go func() {
		defer cancel()
		j.send(ctx, f, calls)
	}()
}

// embark returns only the calls whose callers still wait and that may still be written. It fails the calls that
// may not.
func (j *joiner) embark(f *flight, calls []*call) []*call {
	embarked := calls[:0]
	for _, c := range calls {
		if err := j.may(c.request.Context()); err != nil {
			j.settle(c, outcome{err: err})
			continue
		}
		embarked = append(embarked, c)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	calls, embarked = embarked, embarked[:0]
	for _, c := range calls {
		if !c.left {
			c.flight = f
			embarked = append(embarked, c)
		}
	}
	f.open = len(embarked)
	return embarked
}

// refusing reports whether the apiserver takes no batches.
func (j *joiner) refusing() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.refused.IsZero() && time.Now().Before(j.refused)
}

// refuse remembers that the apiserver takes no batches.
func (j *joiner) refuse(until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused = until
}

// watched returns the request with a trace: if the request goes over a new connection, batches are tried again.
func (j *joiner) watched(r *http.Request) *http.Request {
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(conn httptrace.GotConnInfo) {
			if !conn.Reused {
				j.refuse(time.Time{})
			}
		}}))
}
