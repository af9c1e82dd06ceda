package requestbatch

import (
	"context"
	"sync"
)

// shares are a number of things that users have in turns, and no user too many of.
type shares struct {
	total int64

	mu    sync.Mutex // guards what follows
	taken int64
	of    map[string]int64
	freed signal
}

func newShares(total int64) *shares { return &shares{total: total, of: map[string]int64{}} }

// take returns whether the user has got n more.
func (s *shares) take(user string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.of[user]
	if !fits(s.total, s.taken-mine, mine, n) {
		return false
	}
	s.taken += n
	s.of[user] = mine + n
	return true
}

// await takes n as soon as the user may have them. It returns false where ctx ends before.
func (s *shares) await(ctx context.Context, user string, n int64) bool {
	for {
		freed := s.whenFreed()
		if s.take(user, n) {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (s *shares) whenFreed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed.next()
}

// give gives back what the user has taken.
func (s *shares) give(user string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.of[user] -= n; s.of[user] == 0 {
		delete(s.of, user)
	}
	s.freed.tell()
}

// signal tells many that something has changed. Its owner's lock is held for each call.
type signal struct{ waited chan struct{} }

// next is closed by the next tell.
func (s *signal) next() <-chan struct{} {
	if s.waited == nil {
		s.waited = make(chan struct{})
	}
	return s.waited
}

func (s *signal) tell() {
	if s.waited != nil {
		close(s.waited)
		s.waited = nil
	}
}
