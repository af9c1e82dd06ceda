package storage

import (
	"context"
	"sync"
	"time"

	genericstorage "k8s.io/apiserver/pkg/storage"

	"keelson.dev/kit/contained"
)

const (
	// progressPeriod is how often at most etcd is asked how far it is for caches that still wait: as often as one watch
	// cache asks for its own sake.
	progressPeriod = 100 * time.Millisecond
	// readPeriod is how often at most it is asked ahead of reads. An answer goes through all watch caches; beside what
	// the reads and writes cost that need it, this was too little to be measured.
	readPeriod = 2 * time.Millisecond
	// asking is what breaks off where that does.
	asking = "asking etcd how far it is"
)

// progress asks etcd for its revision on behalf of all watch caches. They share one stream of watches, so that each
// answer goes to all of them. If each cache asked for itself, as the library's do while a read waits for a revision
// that a cache does not know to have yet, the answers would grow with the square of the number of caches: on a slow
// machine they alone kept caches from catching up within the 3 s that a client waits.
//
// The library's caches also ask no more often than ten times a second. A client that reads one kind after the other
// while others write (a namespace that goes, informers that start, kubectl get all) would wait for that at each kind.
// So progress asks etcd as soon as a read knows which revision it wants, once for all reads of 2 ms.
type progress struct {
	now func() time.Time

	mu   sync.Mutex // guards what follows
	last time.Time
	// ahead is when etcd was last asked ahead of a read, known the latest revision that was wanted by then. delayed
	// says that it is about to be asked anyway.
	ahead   time.Time
	known   uint64
	delayed bool
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

// want has ask called for a read of the revision, now or soon, unless it has been since the revision was made. What
// comes of it is nothing that the read relies on: a cache that waits in vain asks by itself.
func (p *progress) want(revision uint64, ask func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if revision <= p.known {
		return
	}
	p.known = revision
	if p.delayed {
		return
	}
	p.delayed = true
	contained.After(readPeriod-p.now().Sub(p.ahead), asking, func() {
		p.mu.Lock()
		p.ahead, p.delayed = p.now(), false
		p.mu.Unlock()
		ask()
	}, nil)
}

// progressing is a resource's store that asks together with those of all others.
type progressing struct {
	genericstorage.Interface

	progress *progress
	// ask asks etcd how far it is, for all watch caches.
	ask func()
}

// RequestWatchProgress implements storage.Interface.
func (p progressing) RequestWatchProgress(ctx context.Context) error {
	if !p.progress.due() {
		return nil
	}
	return p.Interface.RequestWatchProgress(ctx)
}

// GetCurrentResourceVersion implements storage.Interface. Watch caches call it for reads that are to see the latest
// state, and then wait until they have that.
func (p progressing) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	revision, err := p.Interface.GetCurrentResourceVersion(ctx)
	if err == nil {
		p.progress.want(revision, p.ask)
	}
	return revision, err
}
