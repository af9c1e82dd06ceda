package statefulset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "statefulset-controller"

func podCreated(set *appsv1.StatefulSet, pod string) events.Event {
	return events.Normal("SuccessfulCreate", "create Pod %s in StatefulSet %s successful", pod, set.Name)
}

func podRefused(set *appsv1.StatefulSet, pod string, err error) events.Event {
	return events.Warning("FailedCreate", "create Pod %s in StatefulSet %s failed error: %v", pod, set.Name, err)
}

func podDeleted(set *appsv1.StatefulSet, pod string) events.Event {
	return events.Normal("SuccessfulDelete", "delete Pod %s in StatefulSet %s successful", pod, set.Name)
}

func podKept(set *appsv1.StatefulSet, pod string, err error) events.Event {
	return events.Warning("FailedDelete", "delete Pod %s in StatefulSet %s failed error: %v", pod, set.Name, err)
}

func claimCreated(set *appsv1.StatefulSet, created NewClaim) events.Event {
	return events.Normal("SuccessfulCreate", "create Claim %s Pod %s in StatefulSet %s success", created.Claim.Name,
		created.Pod, set.Name)
}

func claimRefused(set *appsv1.StatefulSet, refused NewClaim, err error) events.Event {
	return events.Warning("FailedCreate", "create Claim %s for Pod %s in StatefulSet %s failed error: %v",
		refused.Claim.Name, refused.Pod, set.Name, err)
}

// replaced reports why a Pod that has ended is deleted.
func replaced(set *appsv1.StatefulSet, pod *corev1.Pod) events.Event {
	if pod.Status.Phase == corev1.PodSucceeded {
		return events.Normal("RecreatingTerminatedPod", "StatefulSet %s/%s is recreating terminated Pod %s",
			set.Namespace, set.Name, pod.Name)
	}
	return events.Warning("RecreatingFailedPod", "StatefulSet %s/%s is recreating failed Pod %s", set.Namespace,
		set.Name, pod.Name)
}

// neverWasReady reports the deletion of a Pod that an update would wait for.
func neverWasReady(set *appsv1.StatefulSet, pod string) events.Event {
	return events.Normal("ReplacingNeverReadyPod",
		"Pod %s of an outdated revision never was ready and is replaced, as the annotation %s of StatefulSet %s asks",
		pod,
		RecoverAnnotation, set.Name)
}
