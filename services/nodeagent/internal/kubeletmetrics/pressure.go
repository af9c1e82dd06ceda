package kubeletmetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/services/nodeagent/internal/pressure"
)

// Ousted counts the Pods that had to go from the node for want of room. Make it with NewOusted.
type Ousted struct{ evictions *prometheus.CounterVec }

// NewOusted makes counters that stand at 0.
func NewOusted() Ousted {
	return Ousted{
		evictions: counters("kubelet_evictions", "Cumulative number of pod evictions by eviction signal",
			"eviction_signal"),
	}
}

// Metrics are all counters.
func (o Ousted) Metrics() []prometheus.Collector { return []prometheus.Collector{o.evictions} }

// Evicted counts a Pod that was evicted because the node was short of what the signal says.
func (o Ousted) Evicted(signal pressure.Signal) { o.evictions.WithLabelValues(string(signal)).Inc() }
