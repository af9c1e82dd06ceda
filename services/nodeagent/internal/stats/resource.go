package stats

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var (
	podLabels       = []string{"pod", "namespace"}
	containerLabels = []string{"container", "pod", "namespace"}

	nodeCPU = desc("node_cpu_usage_seconds_total",
		"Cumulative cpu time consumed by the node in core-seconds", nil)
	nodeMemory = desc("node_memory_working_set_bytes",
		"Current working set of the node in bytes", nil)
	nodeSwap = desc("node_swap_usage_bytes",
		"Current swap usage of the node in bytes. Reported only on non-windows systems", nil)
	podCPU = desc("pod_cpu_usage_seconds_total",
		"Cumulative cpu time consumed by the pod in core-seconds", podLabels)
	podMemory = desc("pod_memory_working_set_bytes",
		"Current working set of the pod in bytes", podLabels)
	podSwap = desc("pod_swap_usage_bytes",
		"Current amount of the pod swap usage in bytes. Reported only on non-windows systems", podLabels)
	containerCPU = desc("container_cpu_usage_seconds_total",
		"Cumulative cpu time consumed by the container in core-seconds", containerLabels)
	containerMemory = desc("container_memory_working_set_bytes",
		"Current working set of the container in bytes", containerLabels)
	containerSwap = desc("container_swap_usage_bytes",
		"Current amount of the container swap usage in bytes. Reported only on non-windows systems", containerLabels)
	containerSwapLimit = desc("container_swap_limit_bytes",
		"Current amount of the container swap limit in bytes. Reported only on non-windows systems", containerLabels)
	containerStart = desc("container_start_time_seconds",
		"Start time of the container since unix epoch in seconds", containerLabels)
	scrapeError = desc("resource_scrape_error",
		"1 if there was an error while getting container metrics, 0 otherwise", nil)
)

func desc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Resource serves the figures under the kubelet's resource metric names and labels, each with the time at which it
// was read.
func (c *Collector) Resource() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(resource{c})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// resource is a Collector as a prometheus.Collector: each scrape is a reading.
type resource struct{ *Collector }

// Describe implements prometheus.Collector.
func (r resource) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{nodeCPU, nodeMemory, nodeSwap, podCPU, podMemory, podSwap, containerCPU,
		containerMemory, containerSwap, containerSwapLimit, containerStart, scrapeError} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (r resource) Collect(ch chan<- prometheus.Metric) {
	reading, err := r.read()
	if err != nil {
		ch <- prometheus.MustNewConstMetric(scrapeError, prometheus.GaugeValue, 1)
		return
	}
	failed := 0.0
	if len(reading.faults) > 0 {
		failed = 1
	}
	ch <- prometheus.MustNewConstMetric(scrapeError, prometheus.GaugeValue, failed)
	ch <- cpu(nodeCPU, reading.host.cpuNanos, reading.hostAt)
	ch <- amount(nodeMemory, reading.host.workingSet(), reading.hostAt)
	ch <- amount(nodeSwap, reading.host.swapUsed(), reading.hostAt)
	for i := range reading.pods {
		if pod := &reading.pods[i]; !pod.Removed { // names are unique among the Pods that the API has
			pod.collect(ch)
		}
	}
}

func (p *podReading) collect(ch chan<- prometheus.Metric) {
	if at := p.usage.at; !at.IsZero() {
		ch <- cpu(podCPU, p.usage.CPUNanos, at, p.Name, p.Namespace)
		ch <- amount(podMemory, p.usage.WorkingSet, at, p.Name, p.Namespace)
		ch <- amount(podSwap, p.usage.Swap, at, p.Name, p.Namespace)
	}
	for _, c := range p.containers {
		ch <- cpu(containerCPU, c.usage.CPUNanos, c.usage.at, c.name, p.Name, p.Namespace)
		ch <- amount(containerMemory, c.usage.WorkingSet, c.usage.at, c.name, p.Name, p.Namespace)
		ch <- amount(containerSwap, c.usage.Swap, c.usage.at, c.name, p.Name, p.Namespace)
		if c.usage.SwapLimited {
			ch <- amount(containerSwapLimit, c.usage.SwapLimit, c.usage.at, c.name, p.Name, p.Namespace)
		}
		if !c.startedAt.IsZero() {
			ch <- prometheus.MustNewConstMetric(containerStart, prometheus.GaugeValue,
				float64(c.startedAt.UnixNano())/float64(time.Second), c.name, p.Name, p.Namespace)
		}
	}
}

func cpu(desc *prometheus.Desc, nanos uint64, at time.Time, labels ...string) prometheus.Metric {
	return prometheus.NewMetricWithTimestamp(at, prometheus.MustNewConstMetric(desc, prometheus.CounterValue,
		float64(nanos)/float64(time.Second), labels...))
}

func amount(desc *prometheus.Desc, bytes uint64, at time.Time, labels ...string) prometheus.Metric {
	return prometheus.NewMetricWithTimestamp(at, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue,
		float64(bytes), labels...))
}
