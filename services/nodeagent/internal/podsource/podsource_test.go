package podsource

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// later is a source that takes a while.
type later struct{ after time.Duration }

func (l later) Run(ctx context.Context) { <-ctx.Done() }

func (l later) Synced(ctx context.Context) bool {
	select {
	case <-time.After(l.after):
		return true
	case <-ctx.Done():
		return false
	}
}

// The Pods of the node are known when those of every source are: until then nothing may be taken for a leftover.
func TestAll(t *testing.T) {
	for _, r := range []struct {
		name    string
		sources []Source
		want    time.Duration
		synced  bool
	}{
		{"none", nil, 0, true},
		{"one", []Source{later{time.Second}}, time.Second, true},
		{"the last counts", []Source{later{time.Second}, later{5 * time.Second}}, 6 * time.Second, true},
		{"one that is never synced", []Source{later{time.Second}, later{time.Hour}}, time.Minute, false},
		{"the first of two", []Source{later{time.Hour}, later{time.Second}}, time.Minute, false},
	} {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				source, ended := All(r.sources...), make(chan struct{})
				go func() { defer close(ended); source.Run(ctx) }()
				began := time.Now()
				if got := source.Synced(ctx); got != r.synced || time.Since(began) != r.want {
					t.Errorf("synced %v after %v, want %v after %v", got, time.Since(began), r.synced, r.want)
				}
				cancel()
				<-ended
			})
		})
	}
}
