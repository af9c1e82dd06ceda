// Package inproc runs a scheduler inside another process.
package inproc

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/introspect"
	"keelson.dev/kit/telemetry"
	"keelson.dev/services/scheduler/internal/app"
	"keelson.dev/services/scheduler/internal/config"
)

// Config is what a scheduler needs. All fields but REST are optional.
type Config struct {
	// REST is the connection to the API server.
	REST *rest.Config
	// SchedulerConfig is a KubeSchedulerConfiguration file.
	SchedulerConfig string
	// Seed decides between nodes of equal score; 0 takes one from the clock.
	Seed uint64
	// Log is the logger; none without.
	Log *zap.Logger
	// State is what introspection shows.
	State *introspect.State
}

// Handle is a running scheduler.
type Handle struct {
	// State is what introspection shows.
	State *introspect.State

	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Start starts a scheduler that runs until ctx ends or Stop is called.
func Start(ctx context.Context, c Config) (*Handle, error) {
	scheduler, err := config.Load(c.SchedulerConfig)
	if err != nil {
		return nil, fmt.Errorf("starting the scheduler: %w", err)
	}
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.State == nil {
		c.State = introspect.NewState("scheduler", "inproc")
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &Handle{State: c.State, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		h.err = app.Run(ctx, app.Config{
			REST: c.REST, Scheduler: scheduler, Seed: c.Seed, Log: c.Log, State: c.State,
			Metrics: prometheus.NewRegistry(), Ready: &telemetry.Health{},
		})
	}()
	return h, nil
}

// Done is closed when the scheduler has stopped.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Stop ends the scheduler and returns what went wrong, once it has stopped.
func (h *Handle) Stop() error {
	h.cancel()
	<-h.done
	return h.err
}
