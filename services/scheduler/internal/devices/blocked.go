package devices

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
)

// Blocked returns why no node can take the Pod, whichever; empty for a Pod that claims no devices.
func (b *Book) Blocked(p *corev1.Pod) string {
	return podview.LacksDevices(p, func(name string) *resourcev1.ResourceClaim {
		return b.claims[types.NamespacedName{Namespace: p.Namespace, Name: name}]
	})
}

// Trim reduces a claim, in place, to what counts of it.
func Trim(claim *resourcev1.ResourceClaim) {
	owner := metav1.GetControllerOf(claim)
	claim.ObjectMeta = metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		ResourceVersion: claim.ResourceVersion, DeletionTimestamp: claim.DeletionTimestamp}
	if owner != nil {
		claim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	allocated := claim.Status.Allocation != nil
	claim.Spec, claim.Status = resourcev1.ResourceClaimSpec{}, resourcev1.ResourceClaimStatus{}
	if allocated {
		claim.Status.Allocation = &resourcev1.AllocationResult{}
	}
}
