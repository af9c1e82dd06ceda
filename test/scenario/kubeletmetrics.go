package scenario

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"keelson.dev/kit/metricspage"
	"keelson.dev/test/mesh"
)

// failing is a Pod whose liveness probe fails once, so that it is started again, and that takes all the CPU that it may
// have: its probes share that, and may last.
const failing = `apiVersion: v1
kind: Pod
metadata: {name: failing}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: burn
    image: ` + Server + `
    command: [sh, -c, "while true; do true; done"]
    livenessProbe:
      exec: {command: [sh, -c, "test -e /seen/failed && exit 0; : > /seen/failed; exit 1"]}
      periodSeconds: 1
      timeoutSeconds: 30
      failureThreshold: 1
    readinessProbe: {exec: {command: [sh, -c, "exit 0"]}, periodSeconds: 1, timeoutSeconds: 30}
    resources: {limits: {cpu: 100m, memory: 64Mi}}
    volumeMounts: [{name: seen, mountPath: /seen}]
  volumes: [{name: seen, emptyDir: {}}]
`

// told says which metric a node has to tell: all labels of the metric, where * is for any value, + for any that is not
// empty, and $ns, $node and $uid for those of the test. It has to be more than 0.
type told struct{ path, name, labels string }

// podTold are the metrics that follow from the start, the failure and the end of the failing Pod.
var podTold = []told{
	{"", "kubelet_node_name", "node=$node"},
	{"", "kubelet_running_pods", ""},
	{"", "kubelet_running_containers", "container_state=running"},
	{"", "kubelet_desired_pods", "static=false"},
	{"", "kubelet_active_pods", "static=false"},
	{"", "kubelet_started_pods_total", ""},
	{"", "kubelet_started_containers_total", "container_type=container"},
	{"", "kubelet_terminated_containers_total", "container_type=container exit_code=+ reason=Error"},
	{"", "kubelet_pod_start_duration_seconds", ""},
	{"", "kubelet_pod_worker_start_duration_seconds", ""},
	{"", "kubelet_pod_worker_duration_seconds", "operation_type=create"},
	{"", "kubelet_pod_worker_duration_seconds", "operation_type=sync"},
	{"", "kubelet_runtime_operations_total", "operation_type=create_container"},
	{"", "kubelet_runtime_operations_total", "operation_type=stop_container"},
	{"", "kubelet_runtime_operations_total", "operation_type=exec_sync"},
	{"", "kubelet_runtime_operations_duration_seconds", "operation_type=start_container"},
	{"", "kubelet_run_podsandbox_duration_seconds", "runtime_handler="},
	{"", "kubelet_pleg_relist_duration_seconds", ""},
	{"", "kubelet_pleg_relist_interval_seconds", ""},
	{"", "kubelet_pleg_last_seen_seconds", ""},
	{"", "kubelet_certificate_manager_client_ttl_seconds", ""},
	{"", "kubelet_certificate_manager_server_ttl_seconds", ""},
	{"", "kubelet_http_requests_total", "long_running=false method=GET path=metrics server_type=readwrite"},
	{"", "kubelet_http_inflight_requests", "long_running=false method=GET path=metrics server_type=readwrite"},
	{"/probes", "prober_probe_total",
		"container=burn namespace=$ns pod=failing pod_uid=$uid probe_type=Liveness result=failed"},
	{"/probes", "prober_probe_total",
		"container=burn namespace=$ns pod=failing pod_uid=$uid probe_type=Readiness result=successful"},
	{"/probes", "prober_probe_duration_seconds", "container=burn namespace=$ns pod=failing probe_type=Liveness"},
	{"/cadvisor", "container_cpu_usage_seconds_total",
		"container=burn cpu=total id=+ image=+ name=+ namespace=$ns pod=failing"},
	{"/cadvisor", "container_cpu_usage_seconds_total",
		"container= cpu=total id=+ image= name= namespace=$ns pod=failing"},
	{"/cadvisor", "container_cpu_usage_seconds_total", "container= cpu=total id=/ image= name= namespace= pod="},
	{"/cadvisor", "container_cpu_cfs_throttled_periods_total",
		"container=burn id=+ image=+ name=+ namespace=$ns pod=failing"},
	{"/cadvisor", "container_memory_working_set_bytes", "container=burn id=+ image=+ name=+ namespace=$ns pod=failing"},
	{"/cadvisor", "container_memory_usage_bytes", "container=burn id=+ image=+ name=+ namespace=$ns pod=failing"},
	{"/cadvisor", "container_memory_rss", "container=burn id=+ image=+ name=+ namespace=$ns pod=failing"},
	{"/cadvisor", "container_spec_cpu_quota", "container=burn id=+ image=+ name=+ namespace=$ns pod=failing"},
	{"/cadvisor", "container_spec_memory_limit_bytes", "container=burn id=+ image=+ name=+ namespace=$ns pod=failing"},
	{"/cadvisor", "container_start_time_seconds", "container=burn id=+ image=+ name=+ namespace=$ns pod=failing"},
	{"/cadvisor", "container_network_receive_bytes_total",
		"container= id=+ image= interface=eth0 name=+ namespace=$ns pod=failing"},
	{"/cadvisor", "machine_cpu_cores", "boot_id=+ machine_id=* system_uuid=*"},
	{"/cadvisor", "machine_memory_bytes", "boot_id=+ machine_id=* system_uuid=*"},
}

// KubeletMetrics asks a node for what dashboards and alerts of the field read of a kubelet, while a Pod starts, fails
// its probe and starts again, and after its end.
func KubeletMetrics(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(failing, "apply", "-f", "-")
	w.Kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/failing", "--timeout=90s")
	pod := w.Pods("")[0]
	filled := strings.NewReplacer("$ns", w.Namespace, "$node", pod.Spec.NodeName, "$uid", string(pod.UID))
	w.Await("the metrics of the Pod", func() Answer {
		var missing []string
		all := map[string]map[string]*dto.MetricFamily{}
		for _, path := range []string{"", "/probes", "/cadvisor"} {
			all[path] = nodeMetricFamilies(w, pod.Spec.NodeName, path)
		}
		for _, row := range podTold {
			if !tells(all[row.path][row.name], filled.Replace(row.labels)) {
				missing = append(missing, fmt.Sprint(row))
			}
		}
		return Left(strings.Join(missing, "\n"))
	})
	expectMetricsPage(w, pod.Spec.NodeName)
	w.Kubectl("delete", "pod", "failing", "--timeout=90s")
	w.Await("the end of the Pod in the metrics", func() Answer {
		durations := nodeMetricFamilies(w, pod.Spec.NodeName, "")["kubelet_pod_worker_duration_seconds"]
		if !tells(durations, "operation_type=kill") {
			return "its end took no time"
		}
		for _, path := range []string{"/probes", "/cadvisor"} {
			for _, family := range nodeMetricFamilies(w, pod.Spec.NodeName, path) {
				for _, metric := range family.GetMetric() {
					if strings.Contains(labelsOf(metric), "namespace="+w.Namespace+" ") {
						return Sawf("%s still has %s of it", path, family.GetName())
					}
				}
			}
		}
		return ""
	})
}

// expectMetricsPage compares what a node shows, while a Pod runs that is probed, with the page that lists it.
func expectMetricsPage(w *World, node string) {
	w.Helper()
	for _, path := range []string{"", "/resource", "/probes", "/cadvisor"} {
		shown := FamiliesInOrder(nodeMetricFamilies(w, node, path))
		section := "A node's `/metrics" + path + "`"
		wrong, err := metricspage.Compare(filepath.Join(root(), "docs/reference/metrics.md"), section, shown)
		if err != nil || len(wrong) > 0 {
			w.Errorf("/metrics%s and docs/reference/metrics.md: %v\n%s", path, err, strings.Join(wrong, "\n"))
		}
	}
}

// nodeMetricFamilies are the metrics of a node by their names.
func nodeMetricFamilies(w *World, node, path string) map[string]*dto.MetricFamily {
	w.Helper()
	families, err := MetricFamilies(strings.NewReader(
		w.Kubectl("get", "--raw", "/api/v1/nodes/"+node+"/proxy/metrics"+path)))
	if err != nil {
		w.Fatalf("metrics%s of %s: %v", path, node, err)
	}
	return families
}

// tells reports whether one metric of a family has these labels and is more than 0.
func tells(family *dto.MetricFamily, labels string) bool {
	for _, metric := range family.GetMetric() {
		if fits(labelsOf(metric), labels) && valueOf(metric) > 0 {
			return true
		}
	}
	return false
}

// labelsOf are a metric's labels, sorted by their names.
func labelsOf(metric *dto.Metric) string {
	all := make([]string, 0, len(metric.GetLabel()))
	for _, label := range metric.GetLabel() {
		all = append(all, label.GetName()+"="+label.GetValue())
	}
	return strings.Join(all, " ")
}

// valueOf is the count of a histogram, the value of anything else.
func valueOf(metric *dto.Metric) float64 {
	return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue() +
		float64(metric.GetHistogram().GetSampleCount())
}

// fits compares labels with those of a pattern of told.
func fits(labels, pattern string) bool {
	got, want := strings.Fields(labels), strings.Fields(pattern)
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		name, value, _ := strings.Cut(got[i], "=")
		if got[i] != want[i] && want[i] != name+"=*" && (want[i] != name+"=+" || value == "") {
			return false
		}
	}
	return true
}
