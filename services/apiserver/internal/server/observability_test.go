package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
