package ephemeralvolume

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "ephemeral_volume"

const reasonFailedBinding = "FailedBinding"

// foreign reports that the Pod does not own the claim of the name.
func foreign(pod *corev1.Pod, volume string, claim *corev1.PersistentVolumeClaim) events.Event {
	return events.Warning(reasonFailedBinding,
		"ephemeral volume %s: PVC %s/%s was not created for pod %s/%s (pod is not owner)", volume, claim.Namespace,
		claim.Name, pod.Namespace, pod.Name)
}

// refused reports that a claim could not be created.
func refused(made NewClaim, err error) events.Event {
	return events.Warning(reasonFailedBinding, "ephemeral volume %s: create PVC %s: %v", made.Volume, made.Claim.Name,
		err)
}
