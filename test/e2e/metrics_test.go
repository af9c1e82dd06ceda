package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"keelson.dev/kit/metricspage"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// notAtTheAPI are what the apiserver shows at its status address alone: what daemons have in common.
var notAtTheAPI = []string{"keelson_build_info", "keelson_contained_panics_total"}

// counting are families of which alerts are made, and which count from the start.
var counting = map[string][]string{
	"The apiserver's `/metrics`": {"apiserver_client_certificate_expiration_seconds", "apiserver_request_total",
		"etcd_disk_wal_fsync_duration_seconds", "etcd_mvcc_db_total_size_in_bytes", "etcd_request_duration_seconds",
		"etcd_server_quota_backend_bytes"},
	"The scheduler's `/metrics`":           {"leader_election_master_status"},
	"The workload controllers' `/metrics`": {"leader_election_master_status", "controller_runtime_reconcile_total"},
	"podgc's `/metrics`":                   {"leader_election_master_status", "workqueue_work_duration_seconds"},
}

// expectMetrics compares what the daemons show with the page that lists it, and what the apiserver shows at its status
// address with what it shows at the API's. Of nodes and of the scheduler's loop the same is compared elsewhere.
func expectMetrics(t *testing.T, m *processes.Mesh) {
	shown := map[string][]*dto.MetricFamily{}
	for section, d := range map[string]mesh.Daemon{
		"The apiserver's `/metrics`": mesh.APIServer, "The scheduler's `/metrics`": mesh.Scheduler,
		"The workload controllers' `/metrics`": mesh.WorkloadControllers, "podgc's `/metrics`": mesh.PodGC,
	} {
		shown[section] = scenario.FamiliesInOrder(
			scenario.MetricsOf(t, m.Admin(), "https://"+processes.Argument(m.Of(t, d)[0], "--status-address")))
		wrong, err := metricspage.Compare(filepath.Join(docs, "reference", "metrics.md"), section, shown[section])
		if err != nil || len(wrong) > 0 {
			t.Errorf("%s and docs/reference/metrics.md: %v\n%s", section, err, strings.Join(wrong, "\n"))
		}
		for _, name := range counting[section] {
			if !slices.ContainsFunc(shown[section], func(f *dto.MetricFamily) bool { return counts(f, name) }) {
				t.Errorf("%s: %s counts nothing", section, name)
			}
		}
	}
	atTheAPI := scenario.MetricsOf(t, m.Admin(), m.Admin().Host)
	for _, family := range shown["The apiserver's `/metrics`"] {
		if name := family.GetName(); atTheAPI[name] == nil && !slices.Contains(notAtTheAPI, name) {
			t.Errorf("the API's address does not show %s, the status address does", name)
		}
	}
}

// counts reports whether a family has the name, and one of its metrics is more than 0.
func counts(family *dto.MetricFamily, name string) bool {
	return family.GetName() == name && slices.ContainsFunc(family.GetMetric(), func(m *dto.Metric) bool {
		return m.GetCounter().GetValue()+m.GetGauge().GetValue()+float64(m.GetHistogram().GetSampleCount()) > 0
	})
}
