package app

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"keelson.dev/kit/client"
	"keelson.dev/kit/daemon"
	"keelson.dev/services/podgc/internal/collectors"
	"keelson.dev/services/podgc/internal/collectors/nodehealth"
)

// defaultThreshold is how many finished Pods may stay (shared/spec/README.md).
const defaultThreshold = 12_500

// options are the daemon's flags.
type options struct {
	client client.Options
	config Config
}

// Daemon describes the program.
func Daemon() daemon.Daemon {
	o := &options{config: Config{TerminatedPodThreshold: defaultThreshold, NodeHealth: nodehealth.DefaultSettings()}}
	return daemon.Daemon{
		Name:    name,
		Short:   "Takes objects away: " + strings.Join(collectors.Names(), ", "),
		Options: o, Run: o.run,
	}
}

// AddFlags implements daemon.Options.
func (o *options) AddFlags(fs *pflag.FlagSet) {
	o.client.AddFlags(fs)
	o.config.Election.AddFlags(fs)
	fs.IntVar(&o.config.TerminatedPodThreshold, "terminated-pod-gc-threshold", o.config.TerminatedPodThreshold,
		"how many finished Pods may stay; 0 or less keeps them all")
	o.config.NodeHealth.AddFlags(fs)
}

// Validate implements daemon.Options.
func (o *options) Validate() error {
	if err := o.client.Validate(); err != nil {
		return err
	}
	return o.config.NodeHealth.Validate()
}

func (o *options) run(ctx context.Context, e *daemon.Environment) error {
	rest, err := o.client.Config(name)
	if err != nil {
		return daemon.UsageError(err)
	}
	config := o.config
	config.REST, config.Environment = rest, e
	return Run(ctx, config)
}
