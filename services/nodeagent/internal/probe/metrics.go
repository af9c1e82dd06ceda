package probe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
)

// counts are the counters of diagnostics, with the kubelet's metric names, kept while their Pod exists.
type counts struct {
	results   *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newCounts() counts {
	return counts{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "prober_probe_total",
			Help: "Cumulative number of a liveness, readiness or startup probe for a container by result."},
			[]string{"probe_type", "result", "container", "pod", "namespace", "pod_uid"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "prober_probe_duration_seconds",
			Help: "Duration in seconds for a probe response.", Buckets: prometheus.DefBuckets},
			[]string{"probe_type", "container", "pod", "namespace"}),
	}
}

// Metrics returns the counters of diagnostics.
func (p *Prober) Metrics() []prometheus.Collector {
	return []prometheus.Collector{p.counts.results, p.counts.durations}
}

// results are the metric's label values for outcomes.
var results = map[Outcome]string{Success: "successful", Warning: "successful", Failure: "failed", Unknown: "unknown"}

// count counts a diagnostic.
func (c counts) count(target Target, kind Kind, outcome Outcome, took time.Duration) {
	pod := target.Pod
	c.results.WithLabelValues(string(kind), results[outcome], target.Container.Name, pod.Name, pod.Namespace,
		string(pod.UID)).Inc()
	c.durations.WithLabelValues(string(kind), target.Container.Name, pod.Name, pod.Namespace).Observe(took.Seconds())
}

// Forget drops the counters of a removed Pod, whose probes have ended.
func (p *Prober) Forget(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.results.DeletePartialMatch(prometheus.Labels{"pod_uid": string(pod.UID)})
	p.counts.durations.DeletePartialMatch(prometheus.Labels{"pod": pod.Name, "namespace": pod.Namespace})
}

// count counts a diagnostic of an instance unless that is no longer probed: its Pod may be forgotten.
func (p *Prober) count(target Target, kind Kind, outcome Outcome, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.instances[target.ContainerID] != nil {
		p.counts.count(target, kind, outcome, took)
	}
}
