// Package app puts podgc together: its flags (options.go), its parts (app.go) what they
// decode of objects (mask.go), and what they keep of them (trim.go).
package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
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
	"keelson.dev/services/podgc/internal/collectors"
	"keelson.dev/services/podgc/internal/collectors/nodehealth"
)

// name is the folder's, and so the first half of the Leases' names.
const name = "podgc"

// gatherPause is how long an event may wait for others: no client waits for garbage collection.
const gatherPause = 50 * time.Millisecond

// Config says what to collect where.
type Config struct {
	*daemon.Environment // may be nil
	// REST is the connection to the apiserver.
	REST *rest.Config
	// Election configures how the process competes for the collectors' Leases.
	Election election.Options
	// TerminatedPodThreshold is how many finished Pods may stay; 0 or less keeps them all.
	TerminatedPodThreshold int
	// NodeHealth configures the grace periods and rates of nodehealth; the zero value means its defaults.
	NodeHealth nodehealth.Settings
}

// Run competes for the collectors' Leases until ctx ends, and returns when all of them have stopped.
func Run(ctx context.Context, c Config) error {
	if c.Environment == nil {
		c.Environment = daemon.NewEnvironment(name)
	}
	mask, err := fieldmask.New(clientgoscheme.Scheme, decoded()...)
	if err != nil {
		return fmt.Errorf("starting podgc: %w", err)
	}
	connection, err := gather.Watches(client.ForDaemon(c.REST, name), gatherPause)
	if err != nil {
		return fmt.Errorf("starting podgc: %w", err)
	}
	if connection, err = cork.Client(connection); err != nil {
		return fmt.Errorf("starting podgc: %w", err)
	}
	newInformer, err := mask.Informers(connection)
	if err != nil {
		return fmt.Errorf("starting podgc: %w", err)
	}
	group, err := controller.New(controller.Options{
		Service: name,
		Config:  mask.Over(connection),
		Scheme:  clientgoscheme.Scheme,
		Cache:   cache.Options{NewInformer: newInformer, DefaultTransform: trim},
		Log:     c.Log, State: c.State, Election: c.Election,
		Controllers: collectors.All(collectors.Options{TerminatedPodThreshold: c.TerminatedPodThreshold,
			NodeHealth: cmp.Or(c.NodeHealth, nodehealth.DefaultSettings())}),
	})
	if err != nil {
		return fmt.Errorf("starting podgc: %w", err)
	}
	c.Metrics.Include(ctrlmetrics.Registry)
	c.Metrics.MustRegister(collectors.Metrics()...)
	c.Metrics.MustRegister(events.Metrics()...)
	c.Metrics.MustRegister(election.Metrics()...)
	c.Ready.Add("caches", group.Synced)
	return group.Run(ctx)
}

// Collectors are the names of all collectors.
func Collectors() []string { return collectors.Names() }

// Rules are all that the collectors do at the apiserver.
func Rules() []rbacv1.PolicyRule { return controller.Rules(name, collectors.All(collectors.Options{})) }
