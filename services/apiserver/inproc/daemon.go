package inproc

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"
	"k8s.io/component-base/metrics/legacyregistry"

	"keelson.dev/kit/daemon"
)

// Run is the daemon's whole work: an apiserver until ctx ends, shown on the status address.
func Run(ctx context.Context, e *daemon.Environment, config *Config) error {
	var serving atomic.Bool
	e.Metrics.Include(legacyregistry.DefaultGatherer)
	e.Ready.Add("serving", func() error {
		if !serving.Load() {
			return errors.New("the server is not ready yet, or is stopping")
		}
		return nil
	})
	handle, err := Start(ctx, config, e.Log)
	if err != nil {
		return err
	}
	serving.Store(true)
	defer context.AfterFunc(ctx, func() { serving.Store(false) })()
	e.Log.Info("serving", zap.String("address", handle.Address()))
	<-handle.Done()
	return handle.Err()
}
