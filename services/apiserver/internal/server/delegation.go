package server

import (
	"context"
	"slices"

	discoveryendpoint "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
)

// link is one server of the delegation chain.
type link struct {
	server *genericapiserver.GenericAPIServer
	// ready are its readiness checks. The library passes on a delegate's hooks and health checks, but not these.
	ready []healthz.HealthChecker
	// run serves in the place of the server's own way, for one that prepares more: the aggregator does. It counts for
	// the first link alone.
	run func(context.Context) error
}

// build makes a link that hands to next the requests that it does not know. config is its own: it may be changed. The
// link must be complete when build returns, since the one before takes over its hooks and checks then.
type build func(config *genericapiserver.Config, next genericapiserver.DelegationTarget) (link, error)

// delegates are further links at the ends of the chain. Only tests have any.
type delegates struct {
	before, behind build
}

// delegation builds the servers in the order in which they are asked: core, apiextensions, and in the end an index that
// finds nothing. All share one discovery document. The result runs them all.
func (d delegates) delegation(config *genericapiserver.Config, core, apiextensions build) (link, error) {
	config.AggregatedDiscoveryGroupManager = discoveryendpoint.NewResourceManager("apis")
	var (
		next  = genericapiserver.NewEmptyDelegate()
		first link
		ready []healthz.HealthChecker
	)
	for _, build := range slices.Backward([]build{d.before, core, apiextensions, d.behind}) {
		if build == nil {
			continue
		}
		built, err := build(ownConfig(config), next)
		if err != nil {
			next.Destroy()
			return link{}, err
		}
		first, next = built, built.server
		ready = append(ready, built.ready...)
	}
	if err := first.server.AddReadyzChecks(ready...); err != nil {
		next.Destroy()
		return link{}, err
	}
	if first.run == nil {
		first.run = func(ctx context.Context) error { return first.server.PrepareRun().RunWithContext(ctx) }
	}
	return first, nil
}

// ownConfig copies what a server adds to.
func ownConfig(config *genericapiserver.Config) *genericapiserver.Config {
	own := *config
	own.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{}
	own.HealthzChecks = slices.Clip(own.HealthzChecks)
	own.LivezChecks = slices.Clip(own.LivezChecks)
	own.ReadyzChecks = slices.Clip(own.ReadyzChecks)
	return &own
}
