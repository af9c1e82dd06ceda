// Package collectors is the one list of what this service takes away.
package collectors

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/kit/controller"
	"keelson.dev/services/podgc/internal/collectors/namespace"
	"keelson.dev/services/podgc/internal/collectors/nodehealth"
	"keelson.dev/services/podgc/internal/collectors/owners"
	"keelson.dev/services/podgc/internal/collectors/pods"
	"keelson.dev/services/podgc/internal/collectors/protection"
	"keelson.dev/services/podgc/internal/collectors/tainteviction"
	"keelson.dev/services/podgc/internal/collectors/ttlafterfinished"
	"keelson.dev/services/podgc/internal/podfeed"
)

// Options are the collectors' own settings.
type Options struct {
	// TerminatedPodThreshold is how many finished Pods may stay; 0 or less keeps them all.
	TerminatedPodThreshold int
	// NodeHealth says how patient the collector of that name is.
	NodeHealth nodehealth.Settings
}

// All returns every collector.
func All(o Options) []controller.Registration {
	var evictions tainteviction.Outlook
	feed := podfeed.New()
	return slices.Concat([]controller.Registration{
		namespace.Registration(),
		nodehealth.Registration(o.NodeHealth, feed),
		owners.Registration(feed),
		pods.Registration(o.TerminatedPodThreshold, feed, evictions.Of),
	}, protection.Registrations(feed), []controller.Registration{
		tainteviction.Registration(feed, &evictions),
		ttlafterfinished.Registration(),
	})
}

// Metrics are what the collectors count.
func Metrics() []prometheus.Collector {
	return []prometheus.Collector{pods.Metrics(), tainteviction.Metrics()}
}

// Names returns the collectors' names, sorted.
func Names() []string {
	var names []string
	for _, r := range All(Options{}) {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}
