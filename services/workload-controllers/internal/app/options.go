package app

import (
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"keelson.dev/kit/client"
	"keelson.dev/kit/daemon"
	"keelson.dev/services/workload-controllers/internal/controllers"
	"keelson.dev/services/workload-controllers/internal/controllers/rootca"
)

// options are the daemon's flags.
type options struct {
	client      client.Options
	controllers []string
	concurrent  int
	rootCAFile  string
}

// Daemon describes the program.
func Daemon() daemon.Daemon {
	o := newOptions()
	return daemon.Daemon{
		Name: name, Short: "Reconciles Deployments, ReplicaSets, DaemonSets and what their Pods stand on", Options: o,
		Run: o.run,
	}
}

func newOptions() *options {
	return &options{controllers: []string{"*"}, concurrent: DefaultConcurrentSyncs}
}

// AddFlags implements daemon.Options.
func (o *options) AddFlags(fs *pflag.FlagSet) {
	o.client.AddFlags(fs)
	fs.StringSliceVar(&o.controllers, "controllers", o.controllers,
		fmt.Sprintf("controllers to run, of %v; * stands for all, -name leaves one out", controllers.Names()))
	fs.IntVar(&o.concurrent, "concurrent-syncs", o.concurrent, "how many objects each controller works on at once")
	fs.StringVar(&o.rootCAFile, "root-ca-file", "",
		"PEM bundle to publish in every namespace as ConfigMap kube-root-ca.crt; without it none is published")
}

// Validate implements daemon.Options.
func (o *options) Validate() error {
	if err := o.client.Validate(); err != nil {
		return err
	}
	if err := controllers.Validate(o.controllers); err != nil {
		return fmt.Errorf("--controllers: %w", err)
	}
	if o.concurrent < 1 {
		return fmt.Errorf("--concurrent-syncs: %d must be at least 1", o.concurrent)
	}
	if slices.Contains(o.controllers, rootca.Name) && o.rootCAFile == "" {
		return fmt.Errorf("--controllers: %s needs --root-ca-file", rootca.Name)
	}
	_, err := o.rootCA()
	return err
}

// run is the daemon's work.
func (o *options) run(ctx context.Context, e *daemon.Environment) error {
	rest, err := o.client.Config(name)
	if err != nil {
		return daemon.UsageError(err)
	}
	rootCA, err := o.rootCA()
	if err != nil {
		return daemon.UsageError(err)
	}
	return Run(ctx, Config{
		Environment: e, REST: rest, RootCA: rootCA, Controllers: o.controllers, ConcurrentSyncs: o.concurrent,
	})
}

// rootCA reads the file and makes sure that it holds at least one certificate.
func (o *options) rootCA() ([]byte, error) {
	if o.rootCAFile == "" {
		return nil, nil
	}
	bundle, err := os.ReadFile(o.rootCAFile)
	if err != nil {
		return nil, fmt.Errorf("--root-ca-file: %w", err)
	}
	if block, _ := pem.Decode(bundle); block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("--root-ca-file: %s must begin with a PEM block of type CERTIFICATE", o.rootCAFile)
	}
	return bundle, nil
}
