package app

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"keelson.dev/kit/client"
	"keelson.dev/kit/daemon"
	"keelson.dev/kit/election"
	"keelson.dev/services/scheduler/internal/config"
)

// options are the flags of the daemon.
type options struct {
	client     client.Options
	election   election.Options
	configFile string
	scheduler  config.Config
}

// Daemon describes the program.
func Daemon() daemon.Daemon {
	o := &options{}
	return daemon.Daemon{Name: name, Short: "Give Pods their nodes", Options: o, Run: o.run}
}

// AddFlags binds the flags.
func (o *options) AddFlags(fs *pflag.FlagSet) {
	o.client.AddFlags(fs)
	o.election.AddFlags(fs)
	fs.StringVar(&o.configFile, "scheduler-config", "",
		"KubeSchedulerConfiguration `file` (kubescheduler.config.k8s.io/v1); without it one profile, "+
			"default-scheduler, uses every rule")
}

// Validate reads the files that the flags name.
func (o *options) Validate() error {
	if err := o.client.Validate(); err != nil {
		return err
	}
	var err error
	if o.scheduler, err = config.Load(o.configFile); err != nil {
		return fmt.Errorf("--scheduler-config: %w", err)
	}
	return nil
}

func (o *options) run(ctx context.Context, e *daemon.Environment) error {
	rest, err := o.client.Config(name)
	if err != nil {
		return daemon.UsageError(err)
	}
	return Run(ctx, Config{Environment: e, REST: rest, Election: o.election, Scheduler: o.scheduler})
}
