package podmetrics

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"

	"keelson.dev/services/apiserver/internal/usage"
)

// measurable reports whether there is anything to measure: the Pod has come to a node and has not ended.
func measurable(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.StartTime != nil && pod.Status.Phase != corev1.PodSucceeded &&
		pod.Status.Phase != corev1.PodFailed
}

// nodesOf are the nodes of the Pods that can be measured, each once.
func nodesOf(pods []corev1.Pod) []string {
	var names []string
	seen := map[string]bool{}
	for i := range pods {
		if node := pods[i].Spec.NodeName; measurable(&pods[i]) && !seen[node] {
			seen[node] = true
			names = append(names, node)
		}
	}
	return names
}

// metricsOf is what the Pod's containers use by the readings of the Pod's own node; false if they do not tell. A
// reading from before the Pod is of another that had its name.
func metricsOf(pod *corev1.Pod, readings usage.Readings, now time.Time) (metricsv1.PodMetrics, bool) {
	if !measurable(pod) {
		return metricsv1.PodMetrics{}, false
	}
	all, ok := readings.Pod(usage.PodName{Namespace: pod.Namespace, Name: pod.Name})
	if !ok {
		return metricsv1.PodMetrics{}, false
	}
	metrics := metricsv1.PodMetrics{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace,
		Labels: pod.Labels, CreationTimestamp: metav1.NewTime(now)}}
	for _, container := range containersOf(pod) {
		used, ok := all[container]
		if !ok {
			continue
		}
		if used.At.Before(pod.Status.StartTime.Time) {
			return metricsv1.PodMetrics{}, false
		}
		if metrics.Timestamp.IsZero() || used.At.Before(metrics.Timestamp.Time) {
			metrics.Timestamp = metav1.NewTime(used.At)
		}
		metrics.Window.Duration = max(metrics.Window.Duration, used.Window)
		metrics.Containers = append(metrics.Containers,
			metricsv1.ContainerMetrics{Name: container, Usage: used.Resources()})
	}
	return metrics, len(metrics.Containers) > 0
}

// containersOf are the names that the Pod gives its containers: what a nodeagent says of others is passed over.
func containersOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name)
	}
	return names
}

// sumOf adds the containers up.
func sumOf(metrics *metricsv1.PodMetrics) sum {
	total := sum{name: metrics.Name, usage: corev1.ResourceList{}, window: metrics.Window}
	for _, container := range metrics.Containers {
		for resource, used := range container.Usage {
			whole := total.usage[resource]
			whole.Add(used)
			total.usage[resource] = whole
		}
	}
	return total
}
