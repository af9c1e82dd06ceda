package app

import (
	"cmp"
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"keelson.dev/kit/client"
	"keelson.dev/kit/daemon"
	"keelson.dev/kit/election"
	"keelson.dev/services/workload-controllers/internal/controllers"
	"keelson.dev/services/workload-controllers/internal/controllers/attachdetach"
	"keelson.dev/services/workload-controllers/internal/controllers/cronjob"
	"keelson.dev/services/workload-controllers/internal/controllers/csrsigning"
	"keelson.dev/services/workload-controllers/internal/controllers/endpoint"
	"keelson.dev/services/workload-controllers/internal/controllers/endpointslice"
	"keelson.dev/services/workload-controllers/internal/controllers/endpointslicemirroring"
	"keelson.dev/services/workload-controllers/internal/controllers/horizontalpodautoscaler"
	"keelson.dev/services/workload-controllers/internal/controllers/nodeipam"
	"keelson.dev/services/workload-controllers/internal/controllers/rootca"
	"keelson.dev/services/workload-controllers/internal/controllers/trustbundle"
	"keelson.dev/services/workload-controllers/internal/signers"
)

const (
	// maxEndpoints is how many endpoints the API lets a slice have.
	maxEndpoints = 1000
	// maxBatch bounds for how long endpoints may be out of date.
	maxBatch = 10 * time.Second
)

// options are the daemon's flags.
type options struct {
	client      client.Options
	election    election.Options
	controllers []string
	concurrent  int
	rootCAFile  string
	endpoint    endpoint.Options
	slices      endpointslice.Options
	mirroring   endpointslicemirroring.Options
	autoscaling horizontalpodautoscaler.Settings
	nodeIPAM    nodeipam.Settings
	attach      attachdetach.Settings
	cronJob     cronjob.Settings
	signing     signers.Files
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
	return &options{controllers: []string{"*"}, concurrent: DefaultConcurrentSyncs,
		slices:      endpointslice.Options{MaxEndpoints: DefaultEndpointsPerSlice},
		mirroring:   endpointslicemirroring.Options{MaxEndpoints: DefaultMirroredEndpoints},
		autoscaling: horizontalpodautoscaler.DefaultSettings(), cronJob: cronjob.DefaultSettings(),
		signing: signers.DefaultFiles()}
}

// AddFlags implements daemon.Options.
func (o *options) AddFlags(fs *pflag.FlagSet) {
	o.client.AddFlags(fs)
	o.election.AddFlags(fs)
	fs.StringSliceVar(&o.controllers, "controllers", o.controllers,
		fmt.Sprintf("controllers to run, of %v; * stands for all, -name leaves one out", controllers.Names()))
	fs.IntVar(&o.concurrent, "concurrent-syncs", o.concurrent, "how many objects each controller works on at once")
	fs.StringVar(&o.rootCAFile, "root-ca-file", "",
		"PEM bundle to publish in every namespace as ConfigMap kube-root-ca.crt, and as ClusterTrustBundle; without "+
			"it none is published")
	fs.Int32Var(&o.slices.MaxEndpoints, "max-endpoints-per-slice", o.slices.MaxEndpoints,
		"how many endpoints an EndpointSlice may have")
	fs.Int32Var(&o.mirroring.MaxEndpoints, "mirroring-max-endpoints-per-subset", o.mirroring.MaxEndpoints,
		"how many addresses of each subset of Endpoints are mirrored into EndpointSlices")
	fs.DurationVar(&o.endpoint.Batch, "endpoint-updates-batch-period", 0,
		"how long a Pod's change waits for others before it is written into Endpoints")
	fs.DurationVar(&o.slices.Batch, "endpointslice-updates-batch-period", 0,
		"how long a Pod's change waits for others before it is written into EndpointSlices")
	fs.DurationVar(&o.mirroring.Batch, "mirroring-endpointslice-updates-batch-period", 0,
		"how long a change of Endpoints waits for others before it is mirrored into EndpointSlices")
	o.autoscaling.AddFlags(fs)
	o.nodeIPAM.AddFlags(fs)
	o.attach.AddFlags(fs)
	o.cronJob.AddFlags(fs)
	o.signing.AddFlags(fs)
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
	if err := cmp.Or(o.autoscaling.Validate(), o.nodeIPAM.Validate(), o.cronJob.Validate(),
		o.signing.Validate()); err != nil {
		return err
	}
	for _, publisher := range []string{rootca.Name, trustbundle.Name} {
		if slices.Contains(o.controllers, publisher) && o.rootCAFile == "" {
			return fmt.Errorf("--controllers: %s needs --root-ca-file", publisher)
		}
	}
	if slices.Contains(o.controllers, nodeipam.Name) && len(o.nodeIPAM.ClusterCIDRs) == 0 {
		return fmt.Errorf("--controllers: %s needs --cluster-cidr", nodeipam.Name)
	}
	if slices.Contains(o.controllers, csrsigning.Name) && !o.signing.Named() {
		return fmt.Errorf("--controllers: %s needs --cluster-signing-cert-file", csrsigning.Name)
	}
	if err := o.validateEndpoints(); err != nil {
		return err
	}
	_, err := o.rootCA()
	return err
}

func (o *options) validateEndpoints() error {
	for _, limit := range []struct {
		flag  string
		value int32
	}{{"max-endpoints-per-slice", o.slices.MaxEndpoints},
		{"mirroring-max-endpoints-per-subset", o.mirroring.MaxEndpoints}} {
		if limit.value < 1 || limit.value > maxEndpoints {
			return fmt.Errorf("--%s: %d must be between 1 and %d", limit.flag, limit.value, maxEndpoints)
		}
	}
	for _, batch := range []struct {
		flag   string
		period time.Duration
	}{{"endpoint-updates-batch-period", o.endpoint.Batch}, {"endpointslice-updates-batch-period", o.slices.Batch},
		{"mirroring-endpointslice-updates-batch-period", o.mirroring.Batch}} {
		if batch.period < 0 || batch.period > maxBatch {
			return fmt.Errorf("--%s: %v must be between 0 and %v", batch.flag, batch.period, maxBatch)
		}
	}
	return nil
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
		Environment: e, REST: rest, Election: o.election, RootCA: rootCA, Controllers: o.controllers,
		ConcurrentSyncs: o.concurrent,
		Endpoint:        o.endpoint, EndpointSlice: o.slices, Mirroring: o.mirroring,
		Autoscaling: o.autoscaling, NodeIPAM: o.nodeIPAM, CronJob: o.cronJob, AttachDetach: o.attach,
		Signing: o.signing,
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
