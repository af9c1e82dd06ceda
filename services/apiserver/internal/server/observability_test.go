package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/audit"
	"k8s.io/component-base/tracing"
)

// deaf is the way to a collector that never answers.
type deaf struct{ tracing.TracerProvider }

// Shutdown waits for the collector.
func (deaf) Shutdown(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A collector that does not answer holds up the end of the server for two seconds, not for good.
func TestSpansDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := hasty{deaf{}}.Shutdown(context.Background())
		if took := time.Since(begin); took != 2*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end waited %v: %v", took, err)
		}
	})
}

// receiver takes audit records when the channel is closed.
type receiver struct {
	audit.Backend
	takes chan struct{}
}

// Shutdown waits for the receiver.
func (r receiver) Shutdown() { <-r.takes }

func (receiver) String() string { return "receiver" }

// A receiver that takes no records holds up the end of the server for ten seconds, one that takes them not at all.
func TestRecordsDrain(t *testing.T) {
	for want, takes := range map[time.Duration]bool{10 * time.Second: false, 0: true} {
		synctest.Test(t, func(t *testing.T) {
			r := receiver{takes: make(chan struct{})}
			if takes {
				close(r.takes)
			} else {
				defer close(r.takes)
			}
			begin := time.Now()
			leaving{r}.Shutdown()
			if took := time.Since(begin); took != want {
				t.Errorf("the end waited %v, want %v", took, want)
			}
		})
	}
}
