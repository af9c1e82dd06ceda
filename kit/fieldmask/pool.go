package fieldmask

import "sync"

// Pool has what trimming makes of objects and many of them have alike, once for all of them: it is never changed. It is
// safe for concurrent use.
type Pool[T any] struct {
	most int

	mu    sync.Mutex // guards known
	known map[string]T
}

// NewPool returns one that remembers so many different values at most; beyond that it forgets them and gathers again.
func NewPool[T any](most int) *Pool[T] { return &Pool[T]{most: most, known: map[string]T{}} }

// Share returns what all share under the key, which is made if it is the first.
func (p *Pool[T]) Share(key []byte, create func() T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	if same, ok := p.known[string(key)]; ok {
		return same
	}
	if len(p.known) >= p.most {
		clear(p.known)
	}
	made := create()
	p.known[string(key)] = made
	return made
}

// Len is how many different things are remembered.
func (p *Pool[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.known)
}
