package events

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Why Events are dropped.
const (
	overflow    = "overflow"
	flood       = "flood"
	refused     = "refused"
	unreachable = "unreachable"
)

var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "keelson_event_requests_total",
		Help: "Requests that wrote Events, by kind (batch, create, patch) and outcome (done, failed).",
	}, []string{"kind", "outcome"})
	batchSize = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "keelson_event_batch_size",
		Help:    "Events that went together by one request.",
		Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200},
	})
	dropped = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "keelson_events_dropped_total",
		Help: "Events that were not written: too many were waiting (overflow), too many were about one object " +
			"(flood), the apiserver refused them (refused) or could not be reached for too long (unreachable).",
	}, []string{"reason"})
)

// Metrics show what the pools of this process do.
func Metrics() []prometheus.Collector { return []prometheus.Collector{requests, batchSize, dropped} }

func outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}
