package podview

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// ClaimName returns the name of the PersistentVolumeClaim that a volume of a Pod is of, which for an ephemeral volume
// is made for the Pod; empty for a volume of another kind. The claim is in the Pod's namespace. A volume that says to
// be of both kinds, which the API refuses, is of the claim that it names.
func ClaimName(pod *corev1.Pod, volume *corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, volume)
	}
	return ""
}

// ClaimNames returns the names of the claims that a Pod names, in the order of its volumes.
func ClaimNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if name := ClaimName(pod, &pod.Spec.Volumes[i]); name != "" {
			names = append(names, name)
		}
	}
	return names
}
