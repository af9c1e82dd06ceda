package storage

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

// shownOfEtcd begin the names of what is shown of the embedded etcd: its database, its disk and its member. The field's
// dashboards look for these; the rest is for those who work on etcd.
var shownOfEtcd = []string{"etcd_disk_", "etcd_mvcc_db_", "etcd_server_"}

// showEtcd exports the metrics of the embedded etcd among those of the API, whose address is the only one that clients
// outside of the machine may reach. Servers in one process share it.
var showEtcd = sync.OnceFunc(func() {
	// The field's own wrapper takes metrics that are declared through it alone.
	legacyregistry.RawMustRegister(etcdMetrics{prometheus.DefaultGatherer})
})

// etcdMetrics passes on families of the registry in which etcd puts its own.
type etcdMetrics struct{ of prometheus.Gatherer }

// Describe implements prometheus.Collector: what there is etcd says when it is asked.
func (etcdMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. What could be gathered is passed on where something could not.
func (m etcdMetrics) Collect(out chan<- prometheus.Metric) {
	families, _ := m.of.Gather()
	for _, family := range families {
		if !slices.ContainsFunc(shownOfEtcd, func(p string) bool { return strings.HasPrefix(family.GetName(), p) }) {
			continue
		}
		for _, metric := range family.GetMetric() {
			out <- gathered{descOf(family, metric), metric}
		}
	}
}

// gathered is a metric as a registry has gathered it.
type gathered struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

func descOf(family *dto.MetricFamily, metric *dto.Metric) *prometheus.Desc {
	labels := prometheus.Labels{}
	for _, label := range metric.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	return prometheus.NewDesc(family.GetName(), family.GetHelp(), nil, labels)
}

// Desc implements prometheus.Metric.
func (g gathered) Desc() *prometheus.Desc { return g.desc }

// Write implements prometheus.Metric.
func (g gathered) Write(to *dto.Metric) error {
	to.Label, to.TimestampMs = g.metric.Label, g.metric.TimestampMs
	to.Gauge, to.Counter, to.Summary = g.metric.Gauge, g.metric.Counter, g.metric.Summary
	to.Untyped, to.Histogram = g.metric.Untyped, g.metric.Histogram
	return nil
}
