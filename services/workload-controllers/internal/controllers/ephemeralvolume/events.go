package ephemeralvolume

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "ephemeral_volume"

const reasonFailedBinding = "FailedBinding"

// foreign tells that a claim of the name is not the Pod's.
func foreign(pod *corev1.Pod, volume string, claim *corev1.PersistentVolumeClaim) events.Event {
	return events.Warning(reasonFailedBinding,
		"ephemeral volume %s: PVC %s/%s was not created for pod %s/%s (pod is not owner)", volume, claim.Namespace,
		claim.Name, pod.Namespace, pod.Name)
}

// refused tells that a claim could not be made.
func refused(made NewClaim, err error) events.Event {
	return events.Warning(reasonFailedBinding, "ephemeral volume %s: create PVC %s: %v", made.Volume, made.Claim.Name,
		err)
}
