// Package inproc runs a nodeagent inside another process: a real one, or a simulated one whose containers exist in memory.
package inproc

import (
	"context"

	"go.uber.org/zap"

	"keelson.dev/kit/introspect"
	"keelson.dev/kit/telemetry"
	"keelson.dev/services/nodeagent/internal/app"
)

// Config is what a nodeagent needs. Start from NewConfig.
type Config = app.Config

// NewConfig returns the defaults of a node of the name. REST must be set, and for a simulated node RootDir and LogsDir.
func NewConfig(nodeName string) Config {
	c := app.Defaults(nodeName)
	c.Log = zap.NewNop()
	c.State = introspect.NewState("nodeagent", "inproc")
	c.Ready, c.Live = &telemetry.Health{}, &telemetry.Health{}
	c.Metrics = telemetry.NewMetrics("nodeagent", "inproc")
	return c
}

// Handle is a running nodeagent.
type Handle struct {
	// Ready says what is missing until the node is ready.
	Ready *telemetry.Health

	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Start starts a nodeagent that runs until ctx ends or Stop is called.
func Start(ctx context.Context, c Config) (*Handle, error) {
	ctx, cancel := context.WithCancel(ctx)
	h := &Handle{Ready: c.Ready, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		h.err = app.Run(ctx, c)
	}()
	return h, nil
}

// Done is closed when the nodeagent has stopped.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Stop ends the nodeagent, leaves its containers, and returns what went wrong once it has stopped.
func (h *Handle) Stop() error {
	h.cancel()
	<-h.done
	return h.err
}
