// Package app is the daemon: its flags, and what they come to.
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
	"keelson.dev/services/workload-controllers/inproc"
	"keelson.dev/services/workload-controllers/internal/controllers"
	"keelson.dev/services/workload-controllers/internal/controllers/rootca"
)

// Options are the daemon's flags.
type Options struct {
	client      client.Options
	controllers []string
	concurrent  int
	rootCAFile  string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{controllers: []string{"*"}, concurrent: inproc.DefaultConcurrentSyncs}
}

// AddFlags implements daemon.Options.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.client.AddFlags(fs)
	fs.StringSliceVar(&o.controllers, "controllers", o.controllers,
		fmt.Sprintf("controllers to run, of %v; * stands for all, -name leaves one out", controllers.Names()))
	fs.IntVar(&o.concurrent, "concurrent-syncs", o.concurrent, "how many objects each controller works on at once")
	fs.StringVar(&o.rootCAFile, "root-ca-file", "", "PEM bundle to publish in every namespace as ConfigMap kube-root-ca.crt; without it none is published")
}

// Validate implements daemon.Options.
func (o *Options) Validate() error {
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

// Run is the daemon's work.
func (o *Options) Run(ctx context.Context, e *daemon.Environment) error {
	config, err := o.client.Config("workload-controllers")
	if err != nil {
		return daemon.UsageError(err)
	}
	rootCA, err := o.rootCA()
	if err != nil {
		return daemon.UsageError(err)
	}
	handle, err := inproc.Start(ctx, inproc.Config{
		Config: config, RootCA: rootCA, Controllers: o.controllers, ConcurrentSyncs: o.concurrent, Log: e.Logr, State: e.State,
	})
	if err != nil {
		return err
	}
	e.Status.Ready.Add("caches", handle.Ready)
	return handle.Wait()
}

// rootCA reads the file and makes sure that it holds at least one certificate.
func (o *Options) rootCA() ([]byte, error) {
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
