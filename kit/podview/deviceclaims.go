package podview

import corev1 "k8s.io/api/core/v1"

// ResourceClaimOf returns the name of the ResourceClaim that one of the Pod's claims of devices stands for. It is not
// known of one that is to be made of a template until it is made; it is empty where it turned out that none is needed.
func ResourceClaimOf(pod *corev1.Pod, claim *corev1.PodResourceClaim) (name string, known bool) {
	if claim.ResourceClaimName != nil {
		return *claim.ResourceClaimName, true
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.Name == claim.Name {
			if made.ResourceClaimName == nil {
				return "", true
			}
			return *made.ResourceClaimName, true
		}
	}
	return "", false
}

// UsesResourceClaim tells whether one of the Pod's claims stands for the ResourceClaim of the name.
func UsesResourceClaim(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.ResourceClaims {
		if used, known := ResourceClaimOf(pod, &pod.Spec.ResourceClaims[i]); known && used == name && name != "" {
			return true
		}
	}
	return false
}
