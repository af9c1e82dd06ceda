// Package fairshare divides what the server has few of between its clients, so that no client, and however many names
// somebody has, takes all of it.
package fairshare

import (
	"context"
	"sync"
)

// Shares are a number of things that clients have in turns, and no client too many of. Make them with New.
type Shares struct {
	total int64

	mu    sync.Mutex // guards what follows
	taken int64
	of    map[string]int64
	freed Signal
}

// New makes shares of a total of which nothing is taken.
func New(total int64) *Shares { return &Shares{total: total, of: map[string]int64{}} }

// Most is how many one client may have where others have none.
func (s *Shares) Most() int64 { return s.total / part }

// Take returns whether the client has got n more.
func (s *Shares) Take(client string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.of[client]
	if !fits(s.total, s.taken-mine, mine, n) {
		return false
	}
	s.taken += n
	s.of[client] = mine + n
	return true
}

// Await takes n as soon as the client may have them. It returns false where ctx ends before.
func (s *Shares) Await(ctx context.Context, client string, n int64) bool {
	if s.Take(client, n) {
		return true
	}
	for {
		freed := s.whenFreed()
		if s.Take(client, n) {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (s *Shares) whenFreed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed.Next()
}

// Give gives back n of what the client has taken.
func (s *Shares) Give(client string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.of[client] -= n; s.of[client] == 0 {
		delete(s.of, client)
	}
	s.freed.Tell()
}
