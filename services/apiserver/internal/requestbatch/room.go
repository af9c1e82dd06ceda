package requestbatch

import (
	"context"
	"sync"

	"keelson.dev/services/apiserver/internal/fairshare"
)

// room is what one batch may take of memory and of requests under way.
type room struct {
	*Limits
	user string
	// underWay and answers are shared with all batches.
	underWay, answers *fairshare.Shares

	mu sync.Mutex // guards what follows
	// begun are the requests of this batch that are under way, held what their answers and those that wait to be sent
	// have taken, largest what one has.
	begun, held, largest int64
	closed               bool
	freed                fairshare.Signal
}

// begin waits until one more request may begin. It returns false where ctx ends before.
func (r *room) begin(ctx context.Context) bool {
	for {
		freed, begins := r.tryBegin()
		if begins {
			break
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
	if !r.underWay.Await(ctx, r.user, 1) {
		r.ended()
		return false
	}
	return true
}

func (r *room) tryBegin() (freed <-chan struct{}, begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mayBegin(r.begun, r.held, r.largest, r.PerBatch) {
		r.begun++
		return nil, true
	}
	return r.freed.Next(), false
}

// end says that a request that has begun is answered; took is what its answer has taken.
func (r *room) end(took int64) {
	r.underWay.Give(r.user, 1)
	r.mu.Lock()
	r.largest = max(r.largest, took)
	r.mu.Unlock()
	r.ended()
}

func (r *room) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun--
	r.freed.Tell()
}

// take returns whether an answer may hold n bytes more.
func (r *room) take(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.held+n > r.PerBatch || !r.answers.Take(r.user, n) {
		return false
	}
	r.held += n
	return true
}

// give gives back what answers that are sent or left out have taken.
func (r *room) give(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n == 0 || r.closed {
		return
	}
	r.answers.Give(r.user, n)
	r.held -= n
	r.freed.Tell()
}

// close gives back everything, including the room of answers that will not be sent.
func (r *room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held > 0 {
		r.answers.Give(r.user, r.held)
	}
	r.closed = true
}
