package storage

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// What etcd counts about its database, disk and member is passed on as it is, and nothing else.
func TestEtcdMetricsArePassedOn(t *testing.T) {
	etcd := prometheus.NewRegistry()
	size := prometheus.NewGauge(prometheus.GaugeOpts{Name: "etcd_mvcc_db_total_size_in_bytes", Help: "size"})
	size.Set(7)
	sync := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "etcd_disk_wal_fsync_duration_seconds"})
	sync.Observe(1)
	features := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "etcd_server_feature_enabled"},
		[]string{"stage", "name"})
	features.WithLabelValues("ALPHA", "a").Set(1)
	features.WithLabelValues("BETA", "b").Set(0)
	other := prometheus.NewCounter(prometheus.CounterOpts{Name: "etcd_debugging_mvcc_keys_total"})
	etcd.MustRegister(size, sync, features, other)

	shown := prometheus.NewRegistry()
	shown.MustRegister(etcdMetrics{etcd})
	want, err := etcd.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, err := shown.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var left []*dto.MetricFamily
	for _, family := range want {
		if !strings.HasPrefix(family.GetName(), "etcd_debugging_") {
			left = append(left, family)
		}
	}
	if len(got) != 3 || len(left) != 3 {
		t.Fatalf("%d families are shown, %d were to be", len(got), len(left))
	}
	for i := range got {
		if got[i].String() != left[i].String() {
			t.Errorf("shown as %s\nit is    %s", got[i], left[i])
		}
	}
}
