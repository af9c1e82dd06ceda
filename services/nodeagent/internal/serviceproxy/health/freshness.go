// Package health answers load balancers that ask whether to send connections to this node: of any Service, at the
// proxy's own address, or of one Service, at its health check node port.
package health

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Freshness records how far the kernel lags behind. The zero value has nothing in the kernel.
type Freshness struct {
	mu       sync.Mutex // guards progress; held for a moment only, so that answers do not wait for anything
	progress Progress
}

// Queued notes that a change has come.
func (f *Freshness) Queued(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.progress.PendingSince.IsZero() {
		f.progress.PendingSince = now
	}
}

// Written notes that the kernel has all changes except those since pending; zero if there are none.
func (f *Freshness) Written(now, pending time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.Programmed, f.progress.PendingSince, f.progress.Updated = true, pending, now
}

// Found notes that an earlier agent has left its table, which has to be checked.
func (f *Freshness) Found(now time.Time) {
	f.Queued(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.Programmed = true
}

// SetLeaving sets whether the node is about to leave.
func (f *Freshness) SetLeaving(leaving bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.Leaving = leaving
}

// Progress returns what has been noted.
func (f *Freshness) Progress() Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress
}

func (f *Freshness) judge(now time.Time) verdict { return judge(f.Progress(), now) }

// Serve answers load balancers on an address until ctx ends: whether to send new connections to this node, for any
// Service and regardless of its endpoints.
func (f *Freshness) Serve(ctx context.Context, log *zap.Logger, address string) {
	<-listener{log, f.Handler(), untilNextTry}.open(ctx, address)
}

// Handler serves the paths and answers that kube-proxy serves.
func (f *Freshness) Handler() http.Handler {
	type answer struct {
		LastUpdated  time.Time `json:"lastUpdated"`
		CurrentTime  time.Time `json:"currentTime"`
		NodeEligible *bool     `json:"nodeEligible,omitempty"`
	}
	say := func(w http.ResponseWriter, good bool, a answer) {
		writeHead(w, good)
		_ = json.NewEncoder(w).Encode(a) // the client has gone
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UTC()
		v := f.judge(now)
		say(w, v.healthy && v.eligible, answer{v.updated.UTC(), now, &v.eligible})
	})
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UTC()
		v := f.judge(now)
		say(w, v.healthy, answer{v.updated.UTC(), now, nil})
	})
	return mux
}
