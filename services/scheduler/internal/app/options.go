package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"keelson.dev/kit/client"
	"keelson.dev/kit/daemon"
	"keelson.dev/services/scheduler/internal/config"
)

// Options are the flags of the daemon.
type Options struct {
	client     client.Options
	configFile string
	scheduler  config.Config
}

// NewOptions returns the defaults.
func NewOptions() *Options { return &Options{} }

// AddFlags binds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.client.AddFlags(fs)
	fs.StringVar(&o.configFile, "scheduler-config", "",
		"KubeSchedulerConfiguration `file` (kubescheduler.config.k8s.io/v1); without it one profile, default-scheduler, uses every rule")
}

// Validate reads the files that the flags name.
func (o *Options) Validate() error {
	if err := o.client.Validate(); err != nil {
		return err
	}
	var err error
	if o.scheduler, err = config.Load(o.configFile); err != nil {
		return fmt.Errorf("--scheduler-config: %w", err)
	}
	return nil
}

// Run is the daemon.
func (o *Options) Run(ctx context.Context, e *daemon.Environment) error {
	rest, err := o.client.Config("scheduler")
	if err != nil {
		return err
	}
	return Run(ctx, Config{
		REST:      rest,
		Scheduler: o.scheduler,
		Seed:      uint64(time.Now().UnixNano()),
		Log:       e.Log,
		State:     e.State,
		Metrics:   e.Status.Metrics,
		Ready:     &e.Status.Ready,
	})
}
