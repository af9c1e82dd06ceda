package podview

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// UsesResourceClaim reports whether one of the Pod's claims stands for the ResourceClaim of the name.
func UsesResourceClaim(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.ResourceClaims {
		if used, known := ResourceClaimOf(pod, &pod.Spec.ResourceClaims[i]); known && used == name && name != "" {
			return true
		}
	}
	return false
}

// Unprepared is why a Pod waits whose claims of devices lack nothing.
const Unprepared = "no node of this cluster prepares the devices of the Pod's ResourceClaims"

// LacksDevices returns why the Pod does not have the devices that it claims; empty for one that claims none. find
// returns a ResourceClaim of the Pod's namespace, or nil. Of Pods that are made alike it says the same, so it calls a
// claim that was made for the Pod as the Pod does.
func LacksDevices(pod *corev1.Pod, find func(name string) *resourcev1.ResourceClaim) string {
	for i := range pod.Spec.ResourceClaims {
		if why := lacks(pod, &pod.Spec.ResourceClaims[i], find); why != "" {
			return why
		}
	}
	if len(pod.Spec.ResourceClaims) == 0 {
		return ""
	}
	return Unprepared
}

func lacks(pod *corev1.Pod, asked *corev1.PodResourceClaim, find func(name string) *resourcev1.ResourceClaim) string {
	name, known := ResourceClaimOf(pod, asked)
	what, template := "ResourceClaim "+name, asked.ResourceClaimTemplateName
	if template != nil {
		what = "the Pod's ResourceClaim for " + asked.Name
	}
	switch {
	case !known && template != nil:
		return fmt.Sprintf("%s was not made yet of ResourceClaimTemplate %s", what, *template)
	case known && name == "":
		return "" // none is needed
	}
	switch claim := find(name); {
	case claim == nil:
		return what + " does not exist"
	case template != nil && !metav1.IsControlledBy(claim, pod):
		return what + " was made for another Pod"
	case claim.DeletionTimestamp != nil:
		return what + " is being deleted"
	case claim.Status.Allocation == nil:
		return what + " is not allocated, and nobody in this cluster allocates devices"
	}
	return ""
}
