package serviceproxy

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// track follows how far the kernel is behind.
type track struct {
	mu sync.Mutex // guards progress; held for a moment only, so that answers do not wait for the kernel
	progress
}

// queued notes that a change has come.
func (t *track) queued(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting.IsZero() {
		t.waiting = now
	}
}

// written notes that no change is missing any more.
func (t *track) written(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.carries, t.waiting, t.updated = true, time.Time{}, now
}

// found notes that an agent before has left its table, which has to be looked at.
func (t *track) found(now time.Time) {
	t.queued(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.carries = true
}

func (t *track) setLeaving(leaving bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaving = leaving
}

func (t *track) stand(now time.Time) standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	return stand(t.progress, now)
}

// SetLeaving says whether the node is on its way out.
func (p *Proxy) SetLeaving(leaving bool) { p.track.setLeaving(leaving) }

// ServeHealth answers load balancers on an address until ctx ends: whether to send new connections of Services to this
// node, whatever their endpoints.
func (p *Proxy) ServeHealth(ctx context.Context, address string) {
	<-answerer{p.Log, p.healthHandler(), untilNextTry}.open(ctx, address)
}

// healthHandler has the paths and answers of the field.
func (p *Proxy) healthHandler() http.Handler {
	type answer struct {
		LastUpdated  time.Time `json:"lastUpdated"`
		CurrentTime  time.Time `json:"currentTime"`
		NodeEligible *bool     `json:"nodeEligible,omitempty"`
	}
	say := func(w http.ResponseWriter, good bool, a answer) {
		writeHead(w, good)
		_ = json.NewEncoder(w).Encode(a) // the client is gone
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UTC()
		s := p.track.stand(now)
		say(w, s.healthy && s.eligible, answer{s.updated.UTC(), now, &s.eligible})
	})
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UTC()
		s := p.track.stand(now)
		say(w, s.healthy, answer{s.updated.UTC(), now, nil})
	})
	return mux
}
