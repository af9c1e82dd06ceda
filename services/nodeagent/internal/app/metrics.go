package app

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/kit/events"
	"keelson.dev/kit/telemetry"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podworker"
	"keelson.dev/services/nodeagent/internal/pressure"
)

// startTimes is how long Pods take from their arrival on the node until they run.
type startTimes struct{ prometheus.Histogram }

func newStartTimes() startTimes {
	return startTimes{prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "nodeagent_pod_start_duration_seconds",
		Help:    "Time from the arrival of a Pod on this node until it runs, image pulls included.",
		Buckets: []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 30, 60, 300},
	})}
}

func (s startTimes) observe(took time.Duration) { s.Observe(took.Seconds()) }

// evictions counts the Pods that were evicted because the node was short of something.
type evictions struct{ *prometheus.CounterVec }

func newEvictions() evictions {
	return evictions{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubelet_evictions",
		Help: "Cumulative number of pod evictions by eviction signal",
	}, []string{"eviction_signal"})}
}

func (e evictions) count(signal pressure.Signal) { e.WithLabelValues(string(signal)).Inc() }

// terminations counts the instances of containers that have ended, by what they were and how they ended.
type terminations struct{ named, bare *prometheus.CounterVec }

// newTerminations makes the counter under its name, and under the one without the prefix that tools look for too.
func newTerminations() terminations {
	of := func(name string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name,
			Help: "Cumulative number of containers that terminated by container type, exit code and reason"},
			[]string{"container_type", "exit_code", "reason"})
	}
	return terminations{of("kubelet_terminated_containers_total"), of("terminated_containers_total")}
}

// containerTypes are the metric's words for the kinds of container.
var containerTypes = map[lifecycle.Kind]string{lifecycle.Init: "init_container", lifecycle.Sidecar: "init_container",
	lifecycle.Main: "container", lifecycle.Ephemeral: "ephemeral_container"}

func (t terminations) count(kind lifecycle.Kind, c *observed.Container) {
	for _, counter := range []*prometheus.CounterVec{t.named, t.bare} {
		counter.WithLabelValues(containerTypes[kind], strconv.Itoa(int(c.ExitCode)), c.Reason).Inc()
	}
}

// registerMetrics shows how many Pods the node has and how long they take to start.
func registerMetrics(metrics *telemetry.Metrics, pool *podworker.Pool, starts startTimes, evicted evictions,
	ended terminations) {
	metrics.MustRegister(events.Metrics()...)
	metrics.MustRegister(starts, evicted, ended.named, ended.bare, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "nodeagent_pods", Help: "Pods that this node works on, those that are going included.",
	}, func() float64 { return float64(len(pool.Pods())) }))
}
