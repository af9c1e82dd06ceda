package app

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"
	"k8s.io/component-base/metrics/legacyregistry"

	"keelson.dev/kit/daemon"
)

// heapTarget leaves garbage room while little is alive: the apiserver allocates more than all other daemons together.
const heapTarget = 208 << 20

// Daemon describes the program.
func Daemon() daemon.Daemon { return DaemonWith(NewConfig()) }

// DaemonWith is Daemon with other defaults.
func DaemonWith(config *Config) daemon.Daemon {
	return daemon.Daemon{
		Name: "apiserver", Short: "Store and serve the Kubernetes API of a Keelson mesh", Options: config,
		HeapTarget: heapTarget,
		Run:        func(ctx context.Context, e *daemon.Environment) error { return run(ctx, e, config) },
	}
}

// run is the daemon's whole work: an apiserver until ctx ends, shown on the status address.
func run(ctx context.Context, e *daemon.Environment, config *Config) error {
	doing := atomic.Pointer[string]{}
	progress := func(what string) { doing.Store(&what) }
	progress("starting")
	config.Progress = progress
	e.Metrics.Include(legacyregistry.DefaultGatherer)
	e.Ready.Add("serving", func() error {
		if what := doing.Load(); what != nil {
			return errors.New("the server is not ready: " + *what)
		}
		return nil
	})
	handle, err := Start(ctx, config, e.Log)
	if err != nil {
		return err
	}
	doing.Store(nil)
	defer context.AfterFunc(ctx, func() { progress("stopping") })()
	e.Log.Info("serving", zap.String("address", handle.Address()))
	return handle.Wait()
}
