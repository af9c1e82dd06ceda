// Package fairshare divides the scarce resources of the server between its clients, so that no client takes all of
// them, however many names it has.
package fairshare

import (
	"context"
	"sync"
)

// Shares are a number of things that clients have in turns, and no client too many of. There are as many for tenants,
// for nodes and for the mesh's own daemons. Make them with New.
type Shares struct {
	total, least int64

	mu    sync.Mutex // guards what follows
	taken [Classes]int64
	of    map[string]int64
	freed Signal
}

// New makes shares of a total of which nothing is taken. A client that has none may always take the least.
func New(total, least int64) *Shares {
	return &Shares{total: total, least: least, of: map[string]int64{}}
}

// Take returns whether the client has got n more.
func (s *Shares) Take(client string, n int64) bool { return n <= 0 || s.take(client, n, n) == n }

// take takes as many as the client may have, but no more than most; fewer than the least are none.
func (s *Shares) take(client string, least, most int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine, taken := s.of[client], &s.taken[classOf(client)]
	n := min(room(s.total, s.least, *taken-mine, mine), most)
	if n < least || n <= 0 {
		return 0
	}
	*taken += n
	s.of[client] = mine + n
	return n
}

// Await takes n as soon as the client may have them. It returns false where ctx ends before.
func (s *Shares) Await(ctx context.Context, client string, n int64) bool {
	return n <= 0 || s.AwaitSome(ctx, client, n, n) == n
}

// AwaitSome takes as many as the client may have, at least and at most so many, as soon as it may have the least. It
// returns how many these are: none where ctx ends before.
func (s *Shares) AwaitSome(ctx context.Context, client string, least, most int64) int64 {
	if n := s.take(client, least, most); n > 0 {
		return n
	}
	for {
		freed := s.whenFreed()
		if n := s.take(client, least, most); n > 0 {
			return n
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return 0
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
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[classOf(client)] -= n
	if s.of[client] -= n; s.of[client] == 0 {
		delete(s.of, client)
	}
	s.freed.Tell()
}
