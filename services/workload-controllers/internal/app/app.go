// Package app puts the workload controllers together: their flags (options.go) and what they share (app.go).
package app

import (
	"cmp"
	"context"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"keelson.dev/kit/client"
	"keelson.dev/kit/controller"
	"keelson.dev/kit/cork"
	"keelson.dev/kit/daemon"
	"keelson.dev/kit/election"
	"keelson.dev/kit/events"
	"keelson.dev/kit/fieldmask"
	"keelson.dev/kit/gather"
	"keelson.dev/services/workload-controllers/internal/controllers"
	"keelson.dev/services/workload-controllers/internal/controllers/attachdetach"
	"keelson.dev/services/workload-controllers/internal/controllers/cronjob"
	"keelson.dev/services/workload-controllers/internal/controllers/endpoint"
	"keelson.dev/services/workload-controllers/internal/controllers/endpointslice"
	"keelson.dev/services/workload-controllers/internal/controllers/endpointslicemirroring"
	"keelson.dev/services/workload-controllers/internal/controllers/horizontalpodautoscaler"
	"keelson.dev/services/workload-controllers/internal/controllers/nodeipam"
	"keelson.dev/services/workload-controllers/internal/controllers/persistentvolume"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/signers"
)

// name is the daemon's, and so the first half of its Leases' names.
const name = "workload-controllers"

// gatherPause is how long an event may wait for others: about as long as a pass does.
const gatherPause = 10 * time.Millisecond

// DefaultConcurrentSyncs is enough for thousands of objects, since no pass of a controller waits for another.
const DefaultConcurrentSyncs = 8

const (
	// DefaultEndpointsPerSlice is how many endpoints an EndpointSlice has at most.
	DefaultEndpointsPerSlice = 100
	// DefaultMirroredEndpoints is how many addresses of a subset of Endpoints are mirrored.
	DefaultMirroredEndpoints = 1000
)

// Config says what to run. Only REST must be set.
type Config struct {
	*daemon.Environment // may be nil
	// REST is the connection to the apiserver.
	REST *rest.Config
	// Election configures how the process competes for the controllers' Leases.
	Election election.Options
	// RootCA is the PEM bundle to publish in every namespace; without one none is published.
	RootCA []byte
	// Controllers are the names of those to run; "*" selects all and "-name" leaves one out. Empty means all.
	Controllers []string
	// Endpoint, EndpointSlice and Mirroring are the flags of these controllers. 0 endpoints means the default number.
	Endpoint      endpoint.Options
	EndpointSlice endpointslice.Options
	Mirroring     endpointslicemirroring.Options
	// ConcurrentSyncs is how many objects each controller works on at once; 0 means DefaultConcurrentSyncs.
	ConcurrentSyncs int
	// Autoscaling are the settings of the autoscaler; without any they are those of its flags' defaults.
	Autoscaling horizontalpodautoscaler.Settings
	// CronJob are the settings of cronjob.
	CronJob cronjob.Settings
	// AttachDetach are the settings of attachdetach.
	AttachDetach attachdetach.Settings
	// NodeIPAM are the ranges of Pods that nodes get their shares of; without any they get none.
	NodeIPAM nodeipam.Settings
	// Signing is the authority that signs certificates; without one no certificates are signed. The default of Longest
	// is that of the flag.
	Signing signers.Files
}

// Run competes for the controllers' Leases until ctx ends, and returns when all of them have stopped.
func Run(ctx context.Context, c Config) error {
	c = withDefaults(c)
	if err := cmp.Or(controllers.Validate(c.Controllers), c.NodeIPAM.Validate()); err != nil {
		return err
	}
	volumes := &persistentvolume.Volumes{}
	c.State.AddExplainer("PersistentVolume", volumes.Explain)
	all := controllers.All(controllers.Options{
		RootCA: c.RootCA, Volumes: volumes, Endpoint: c.Endpoint, EndpointSlice: c.EndpointSlice,
		Mirroring:  c.Mirroring,
		Concurrent: c.ConcurrentSyncs, Autoscaling: c.Autoscaling, NodeIPAM: c.NodeIPAM,
		CronJob: c.CronJob, AttachDetach: c.AttachDetach, Signing: c.Signing,
	})
	mask, err := fieldmask.New(scheme.Scheme, podfeed.Decoded()...)
	if err != nil {
		return err
	}
	connection, err := gather.Watches(client.ForDaemon(c.REST, name), gatherPause)
	if err != nil {
		return err
	}
	if connection, err = cork.Client(connection); err != nil {
		return err
	}
	newInformer, err := mask.Informers(connection)
	if err != nil {
		return err
	}
	group, err := controller.New(controller.Options{
		Service: name, Config: mask.Over(connection), Scheme: scheme.Scheme,
		Cache: cache.Options{DefaultTransform: podfeed.Trim, NewInformer: newInformer},
		Log:   c.Log, State: c.State, Election: c.Election, Controllers: controllers.Select(all, c.Controllers),
	})
	if err != nil {
		return err
	}
	c.Metrics.Include(ctrlmetrics.Registry)
	c.Metrics.MustRegister(podops.Metrics())
	c.Metrics.MustRegister(events.Metrics()...)
	c.Metrics.MustRegister(election.Metrics()...)
	c.Ready.Add("caches", group.Synced)
	return group.Run(ctx)
}

// Rules are all that the named controllers do at the apiserver; without names, all of them.
func Rules(names ...string) []rbacv1.PolicyRule {
	if len(names) == 0 {
		names = []string{"*"}
	}
	return controller.Rules(name, controllers.Select(controllers.All(controllers.Whole()), names))
}

// Controllers are the names of all controllers.
func Controllers() []string { return controllers.Names() }

func withDefaults(c Config) Config {
	if c.Environment == nil {
		c.Environment = daemon.NewEnvironment(name)
	}
	if len(c.Controllers) == 0 {
		c.Controllers = []string{"*"}
	}
	c.EndpointSlice.MaxEndpoints = cmp.Or(c.EndpointSlice.MaxEndpoints, DefaultEndpointsPerSlice)
	c.Mirroring.MaxEndpoints = cmp.Or(c.Mirroring.MaxEndpoints, DefaultMirroredEndpoints)
	if c.ConcurrentSyncs == 0 {
		c.ConcurrentSyncs = DefaultConcurrentSyncs
	}
	c.Signing.Longest = cmp.Or(c.Signing.Longest, signers.DefaultFiles().Longest)
	c.Autoscaling = cmp.Or(c.Autoscaling, horizontalpodautoscaler.DefaultSettings())
	return c
}
