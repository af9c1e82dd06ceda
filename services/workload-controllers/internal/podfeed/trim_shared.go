package podfeed

import (
	"sync"
	"unique"
)

// mostShared bounds how many different things a pool remembers; beyond it they are forgotten and gathered anew.
const mostShared = 10_000

// pool are things that many Pods have alike, kept once for all of them and never changed.
type pool[T any] struct {
	mu    sync.Mutex // guards known
	known map[string]*T
}

// share returns what all Pods share under the key, which is made if it is the first.
func (p *pool[T]) share(key []byte, create func() *T) *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	if same, ok := p.known[string(key)]; ok {
		return same
	}
	if len(p.known) >= mostShared {
		clear(p.known)
	}
	made := create()
	p.known[string(key)] = made
	return made
}

// shared returns the same text in memory that all Pods share.
func shared[T ~string](text T) T { return T(unique.Make(string(text)).Value()) }
