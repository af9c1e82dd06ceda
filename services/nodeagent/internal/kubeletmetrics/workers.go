// Package kubeletmetrics keeps the agent's metrics that have the names, labels and buckets of a kubelet's, for
// existing dashboards and alerts. Each counts real events of this agent; metrics for which it has none are left out
// (docs/reference/metrics.md).
package kubeletmetrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podworker"
)

// podStart are the buckets for the start of Pods.
var podStart = []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200,
	1800, 2700, 3600}

// containerTypes are the metrics' label values for the kinds of container.
var containerTypes = map[lifecycle.Kind]string{lifecycle.Init: "init_container", lifecycle.Sidecar: "init_container",
	lifecycle.Main: "container", lifecycle.Ephemeral: "ephemeral_container"}

// Workers counts what the workers of Pods do. Create it with NewWorkers.
type Workers struct {
	syncs                       *prometheus.HistogramVec
	taken, running, finer       prometheus.Histogram
	pods, podErrors             prometheus.Counter
	containers, containerErrors *prometheus.CounterVec
	ended, endedBare            *prometheus.CounterVec
}

var _ podworker.Observer = (*Workers)(nil)

// NewWorkers returns counters at 0.
func NewWorkers() *Workers {
	endings := []string{"container_type", "exit_code", "reason"}
	return &Workers{
		syncs: histograms("kubelet_pod_worker_duration_seconds", "Duration in seconds to sync a single pod. "+
			"Broken down by operation type: create, update, kill, or sync", prometheus.DefBuckets, "operation_type"),
		taken: histogram("kubelet_pod_worker_start_duration_seconds",
			"Duration in seconds from kubelet seeing a pod to starting a worker.", prometheus.DefBuckets),
		running: histogram("kubelet_pod_start_duration_seconds",
			"Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run", podStart),
		finer: histogram("nodeagent_pod_start_duration_seconds",
			"Time from the arrival of a Pod on this node until it runs, image pulls included.",
			[]float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 30, 60, 300}),
		pods:      counter("kubelet_started_pods_total", "Cumulative number of pods started"),
		podErrors: counter("kubelet_started_pods_errors_total", "Cumulative number of errors when starting pods"),
		containers: counters("kubelet_started_containers_total", "Cumulative number of containers started",
			"container_type"),
		containerErrors: counters("kubelet_started_containers_errors_total",
			"Cumulative number of errors when starting containers", "container_type", "code"),
		ended: counters("kubelet_terminated_containers_total",
			"Cumulative number of containers that terminated by container type, exit code and reason", endings...),
		endedBare: counters("terminated_containers_total",
			"Cumulative number of containers that terminated by container type, exit code and reason", endings...),
	}
}

// Metrics returns all counters.
func (w *Workers) Metrics() []prometheus.Collector {
	return []prometheus.Collector{w.syncs, w.taken, w.running, w.finer, w.pods, w.podErrors, w.containers,
		w.containerErrors, w.ended, w.endedBare}
}

// Taken implements podworker.Observer.
func (w *Workers) Taken(waited time.Duration) { w.taken.Observe(waited.Seconds()) }

// Running implements podworker.Observer.
func (w *Workers) Running(took time.Duration) {
	w.running.Observe(took.Seconds())
	w.finer.Observe(took.Seconds())
}

// Synced implements podworker.Observer.
func (w *Workers) Synced(kind podworker.Sync, took time.Duration) {
	w.syncs.WithLabelValues(string(kind)).Observe(took.Seconds())
}

// SandboxStarted implements podworker.Observer. A failed sandbox counts as started too: dashboards divide failed by
// started ones.
func (w *Workers) SandboxStarted(err error) {
	w.pods.Inc()
	if err != nil {
		w.podErrors.Inc()
	}
}

// ContainerStarted implements podworker.Observer. It counts like SandboxStarted.
func (w *Workers) ContainerStarted(kind lifecycle.Kind, reason string) {
	w.containers.WithLabelValues(containerTypes[kind]).Inc()
	if reason != "" {
		w.containerErrors.WithLabelValues(containerTypes[kind], reason).Inc()
	}
}

// Ended implements podworker.Observer. It counts under the name with the prefix and the one without, which some
// tools use.
func (w *Workers) Ended(kind lifecycle.Kind, c *observed.Container) {
	for _, counter := range []*prometheus.CounterVec{w.ended, w.endedBare} {
		counter.WithLabelValues(containerTypes[kind], strconv.Itoa(int(c.ExitCode)), c.Reason).Inc()
	}
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
