package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/services/scheduler/internal/queue"
)

// metrics are what the daemon shows on /metrics.
type metrics struct {
	tries    *prometheus.CounterVec
	deciding prometheus.Histogram
	bindings *prometheus.CounterVec
	binding  prometheus.Histogram
	waiting  *prometheus.GaugeVec
	attempts *prometheus.CounterVec
	victims  prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_decisions_total", Help: "Tries to find a node for a Pod, by result."}, []string{"result"}),
		deciding: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "scheduler_decision_duration_seconds", Help: "Time to find a node for a Pod.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10)}),
		bindings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_bindings_total", Help: "Bindings written, by result."}, []string{"result"}),
		binding: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "scheduler_binding_duration_seconds", Help: "Time from a decision to the API server's answer.",
			Buckets: prometheus.ExponentialBuckets(1e-3, 2, 14)}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "scheduler_pending_pods", Help: "Pods without a node, by the part of the queue."}, []string{"queue"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scheduler_preemptions_total",
			Help: "Preemptions carried out, by result."}, []string{"result"}),
		victims: prometheus.NewCounter(prometheus.CounterOpts{Name: "scheduler_preemption_victims_total",
			Help: "Pods that were deleted to make room for others."}),
	}
	registry.MustRegister(m.tries, m.deciding, m.bindings, m.binding, m.waiting, m.attempts, m.victims)
	for _, result := range []string{"placed", "unschedulable"} {
		m.tries.WithLabelValues(result)
	}
	for _, result := range []string{"bound", "failed"} {
		m.bindings.WithLabelValues(result)
	}
	for _, result := range []string{"done", "failed"} {
		m.attempts.WithLabelValues(result)
	}
	return m
}

func (m *metrics) decided(placed bool, took time.Duration) {
	result := "unschedulable"
	if placed {
		result = "placed"
	}
	m.tries.WithLabelValues(result).Inc()
	m.deciding.Observe(took.Seconds())
}

func (m *metrics) bound(ok bool, took time.Duration) {
	result := "failed"
	if ok {
		result = "bound"
	}
	m.bindings.WithLabelValues(result).Inc()
	m.binding.Observe(took.Seconds())
}

func (m *metrics) depth(place queue.Place, n int) {
	m.waiting.WithLabelValues(string(place)).Set(float64(n))
}

func (m *metrics) preempted(victims int, ok bool) {
	result := "failed"
	if ok {
		result = "done"
	}
	m.attempts.WithLabelValues(result).Inc()
	m.victims.Add(float64(victims))
}
