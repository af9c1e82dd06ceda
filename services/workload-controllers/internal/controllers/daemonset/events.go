package daemonset

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "daemonset-controller"

func createFailed(err error) events.Event {
	return events.Warning("FailedCreate", "Error creating: %v", err)
}

func deleteFailed(err error) events.Event {
	return events.Warning("FailedDelete", "Error deleting: %v", err)
}

// podFailed reports that a Pod has failed and is replaced.
func podFailed(pod *corev1.Pod) events.Event {
	return events.Warning("FailedDaemonPod", "Found failed daemon pod %s/%s on node %s, will try to kill it",
		pod.Namespace, pod.Name, nodeOf(pod))
}

// podSucceeded reports that a Pod has ended, which a daemon should not, and is replaced.
func podSucceeded(pod *corev1.Pod) events.Event {
	return events.Normal("SucceededDaemonPod", "Found succeeded daemon pod %s/%s on node %s, will try to delete it",
		pod.Namespace, pod.Name, nodeOf(pod))
}
