package serviceproxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics describe the proxy's cost and progress.
type metrics struct {
	duration          *prometheus.HistogramVec
	changes, failures prometheus.Counter
	last, services    prometheus.Gauge
}

func newMetrics() *metrics {
	return &metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "nodeagent_service_proxy_sync_duration_seconds",
			Help:    "Time from the decision to the kernel's answer, for the whole table or for what changed.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
		}, []string{"scope"}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "nodeagent_service_proxy_changes_total",
			Help: "Elements of the kernel's sets that were added or removed.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "nodeagent_service_proxy_sync_failures_total", Help: "Transactions that the kernel refused.",
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nodeagent_service_proxy_last_sync_timestamp_seconds",
			Help: "When the kernel's table was made right last.",
		}),
		services: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nodeagent_service_proxy_services", Help: "Services whose traffic this node carries.",
		}),
	}
}

func (m *metrics) observe(w work, count int, err error) {
	if err != nil {
		m.failures.Inc()
		return
	}
	scope := "change"
	if w.whole {
		scope = "all"
	}
	m.duration.WithLabelValues(scope).Observe(time.Since(w.begun).Seconds())
	m.changes.Add(float64(count))
	m.last.SetToCurrentTime()
}

// Metrics returns the proxy's metrics.
func (p *Proxy) Metrics() []prometheus.Collector {
	m := p.metrics
	return []prometheus.Collector{m.duration, m.changes, m.failures, m.last, m.services}
}
