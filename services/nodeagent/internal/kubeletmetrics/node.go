package kubeletmetrics

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podworker"
)

var (
	nodeName          = desc("kubelet_node_name", "The node's name. The count is always 1.", "node")
	runningPods       = desc("kubelet_running_pods", "Number of pods that have a running pod sandbox")
	runningContainers = desc("kubelet_running_containers", "Number of containers currently running", "container_state")
	desiredPods       = desc("kubelet_desired_pods", "The number of pods the kubelet is being instructed to run. "+
		"static is true if the pod is not from the apiserver.", "static")
	activePods = desc("kubelet_active_pods", "The number of pods the kubelet considers active and which are being "+
		"considered when admitting new pods. static is true if the pod is not from the apiserver.", "static")
	ephemeralContainers = desc("kubelet_managed_ephemeral_containers",
		"Current number of ephemeral containers in pods managed by this kubelet.")
	workedOn = desc("nodeagent_pods", "Pods that this node works on, those that are going included.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Node counts the Pods of the node at each scrape.
type Node struct {
	// Name is the node's name.
	Name string
	// Pods returns the views of all Pods, Active the Pods that hold resources of the node.
	Pods   func() []podworker.View
	Active func() map[*corev1.Pod]bool
	// Static reports whether a Pod is from a file of the node.
	Static func(uid types.UID) bool
}

// Describe implements prometheus.Collector.
func (Node) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{nodeName, runningPods, runningContainers, desiredPods, activePods,
		ephemeralContainers, workedOn} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (n Node) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	views := n.Pods()
	sandboxes, ephemeral, states := 0, 0, map[observed.ContainerState]int{}
	desired, active := map[bool]int{}, map[bool]int{}
	for i := range views {
		v := &views[i]
		if v.Sandbox {
			sandboxes++
		}
		for state, count := range v.States {
			states[state] += count
		}
		if !v.Removed {
			desired[n.Static(v.Pod.UID)]++
			ephemeral += len(v.Pod.Spec.EphemeralContainers)
		}
	}
	for pod := range n.Active() {
		active[n.Static(pod.UID)]++
	}
	gauge(nodeName, 1, n.Name)
	gauge(runningPods, sandboxes)
	gauge(workedOn, len(views))
	gauge(ephemeralContainers, ephemeral)
	for _, state := range []observed.ContainerState{observed.Created, observed.Running, observed.Exited,
		observed.Unknown} {
		gauge(runningContainers, states[state], strings.ToLower(string(state)))
	}
	for _, static := range []bool{false, true} {
		label := strconv.FormatBool(static)
		gauge(desiredPods, desired[static], label)
		gauge(activePods, active[static], label)
	}
}
