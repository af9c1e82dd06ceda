package storage

import (
	"context"
	"sync"
	"time"

	genericstorage "k8s.io/apiserver/pkg/storage"
)

// progressPeriod is how often at most etcd is asked how far it is: as often as one watch cache asks for its own sake.
const progressPeriod = 100 * time.Millisecond

// progress asks etcd for all watch caches how far it is. They share one stream of watches, so that each answer goes to
// all of them. If each cache asked for itself, as the library's do while somebody waits for a state that a cache does
// not know yet to have, the answers would grow with the square of the number of caches: on a slow machine they alone
// kept caches from catching up within the 3 s that a client waits.
type progress struct {
	now func() time.Time

	mu   sync.Mutex // guards last
	last time.Time
}

// due is whether to ask now. Whoever is refused asks again a period later.
func (p *progress) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if !p.last.IsZero() && now.Sub(p.last) < progressPeriod {
		return false
	}
	p.last = now
	return true
}

// progressing is a resource's store that asks together with those of all others.
type progressing struct {
	genericstorage.Interface

	progress *progress
}

// RequestWatchProgress implements storage.Interface.
func (p progressing) RequestWatchProgress(ctx context.Context) error {
	if !p.progress.due() {
		return nil
	}
	return p.Interface.RequestWatchProgress(ctx)
}
