// Package collectors is the one list of what this service takes away.
package collectors

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/kit/controller"
	"keelson.dev/services/podgc/internal/collectors/namespace"
	"keelson.dev/services/podgc/internal/collectors/owners"
	"keelson.dev/services/podgc/internal/collectors/pods"
	"keelson.dev/services/podgc/internal/collectors/ttlafterfinished"
)

// Options are the collectors' own settings.
type Options struct {
	// TerminatedPodThreshold is how many finished Pods may stay; 0 or less keeps them all.
	TerminatedPodThreshold int
}

// All returns every collector.
func All(o Options) []controller.Registration {
	return []controller.Registration{
		namespace.Register(),
		owners.Register(),
		pods.Register(o.TerminatedPodThreshold),
		ttlafterfinished.Register(),
	}
}

// Metrics are what the collectors count.
func Metrics() prometheus.Collector { return pods.Metrics() }

// Names returns the collectors' names, sorted.
func Names() []string {
	var names []string
	for _, r := range All(Options{}) {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}
