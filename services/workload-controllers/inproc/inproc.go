// Package inproc runs the workload controllers inside a process: the daemon's, or a test's.
package inproc

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"keelson.dev/kit/client"
	"keelson.dev/kit/controller"
	"keelson.dev/kit/introspect"
	"keelson.dev/services/workload-controllers/internal/controllers"
	"keelson.dev/services/workload-controllers/internal/podfeed"
)

// service is the daemon's name and the first half of its Leases' names.
const service = "workload-controllers"

// Config says what to run. Only Config is needed.
type Config struct {
	// Config is how to reach the apiserver.
	Config *rest.Config
	// RootCA is the PEM bundle to publish in every namespace; without one none is published.
	RootCA []byte
	// Controllers are the names of those to run; "*" stands for all and "-name" leaves one out. Empty means all.
	Controllers []string
	// ConcurrentSyncs is how many objects each controller works on at once; 0 means DefaultConcurrentSyncs.
	ConcurrentSyncs int
	// Log and State may be left out.
	Log   logr.Logger
	State *introspect.State
}

// DefaultConcurrentSyncs is enough for thousands of objects, since no pass of a controller waits for another.
const DefaultConcurrentSyncs = 8

// Handle is the running set of controllers.
type Handle = controller.Running

// Start begins to stand for the controllers' Leases and returns at once. The controllers run until ctx ends or Stop is
// called.
func Start(ctx context.Context, c Config) (*Handle, error) {
	c = withDefaults(c)
	if err := controllers.Validate(c.Controllers); err != nil {
		return nil, err
	}
	all := controllers.All(controllers.Options{RootCA: c.RootCA, Concurrent: c.ConcurrentSyncs})
	return controller.Start(ctx, controller.Options{
		Service: service, Config: client.ForDaemon(c.Config, service), Scheme: scheme.Scheme,
		Cache: cache.Options{DefaultTransform: podfeed.Strip},
		Log:   c.Log, State: c.State, Controllers: controllers.Select(all, c.Controllers),
	})
}

func withDefaults(c Config) Config {
	if len(c.Controllers) == 0 {
		c.Controllers = []string{"*"}
	}
	if c.ConcurrentSyncs == 0 {
		c.ConcurrentSyncs = DefaultConcurrentSyncs
	}
	if c.Log.GetSink() == nil {
		c.Log = logr.Discard()
	}
	if c.State == nil {
		c.State = introspect.NewState(service, "")
	}
	return c
}
