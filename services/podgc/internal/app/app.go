// Package app is podgc's command: its flags and how they become a running service.
package app

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"keelson.dev/kit/client"
	"keelson.dev/kit/daemon"
	"keelson.dev/services/podgc/inproc"
	"keelson.dev/services/podgc/internal/collectors"
)

// defaultThreshold is how many finished Pods may stay (shared/spec/README.md).
const defaultThreshold = 12_500

type options struct {
	client    client.Options
	threshold int
}

// New describes the daemon.
func New() daemon.Daemon {
	o := &options{threshold: defaultThreshold}
	return daemon.Daemon{
		Name:    "podgc",
		Short:   "Takes objects away: " + strings.Join(collectors.Names(), ", "),
		Options: o, Run: o.run,
	}
}

// AddFlags implements daemon.Options.
func (o *options) AddFlags(fs *pflag.FlagSet) {
	o.client.AddFlags(fs)
	fs.IntVar(&o.threshold, "terminated-pod-gc-threshold", o.threshold, "how many finished Pods may stay; 0 or less keeps them all")
}

// Validate implements daemon.Options.
func (o *options) Validate() error { return o.client.Validate() }

func (o *options) run(ctx context.Context, e *daemon.Environment) error {
	config, err := o.client.Config("podgc")
	if err != nil {
		return daemon.UsageError(err)
	}
	e.Status.Metrics.Include(ctrlmetrics.Registry)
	h, err := inproc.Start(ctx, inproc.Config{
		Client: config, TerminatedPodThreshold: o.threshold, Log: e.Logr, State: e.State,
	})
	if err != nil {
		return err
	}
	e.Status.Ready.Add("caches", h.Ready)
	return h.Wait()
}
