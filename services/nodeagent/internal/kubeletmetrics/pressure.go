package kubeletmetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/services/nodeagent/internal/pressure"
)

// Ousted counts the Pods that were evicted for lack of a resource. Create it with NewOusted.
type Ousted struct{ evictions *prometheus.CounterVec }

// NewOusted returns counters at 0.
func NewOusted() Ousted {
	return Ousted{
		evictions: counters("kubelet_evictions", "Cumulative number of pod evictions by eviction signal",
			"eviction_signal"),
	}
}

// Metrics returns all counters.
func (o Ousted) Metrics() []prometheus.Collector { return []prometheus.Collector{o.evictions} }

// Evicted counts a Pod that was evicted because the node was short of the signal's resource.
func (o Ousted) Evicted(signal pressure.Signal) { o.evictions.WithLabelValues(string(signal)).Inc() }
