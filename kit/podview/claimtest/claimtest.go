// Package claimtest makes Pods that claim devices, and claims, for tests.
package claimtest

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Claiming is the Pod "p" of the namespace "ns", which names these claims.
func Claiming(claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}}
	for _, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim,
			ResourceClaimName: &claim})
	}
	return pod
}

// Templated is the Pod with a claim "gpu" by the template "t". Its status says nothing of the claim where made is nil,
// that none is needed where it is empty, and else that it is the one of the name.
func Templated(made *string) *corev1.Pod {
	pod := Claiming()
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")}}
	if made != nil {
		status := corev1.PodResourceClaimStatus{Name: "gpu"}
		if *made != "" {
			status.ResourceClaimName = made
		}
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{status}
	}
	return pod
}

// Claim is a claim of the Pod's namespace.
func Claim(name string, changes ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, change := range changes {
		change(c)
	}
	return c
}

// Allocated gives a claim devices.
func Allocated(c *resourcev1.ResourceClaim) { c.Status.Allocation = &resourcev1.AllocationResult{} }

// MadeFor makes a claim that of a Pod with the UID.
func MadeFor(uid types.UID) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		pod := Claiming()
		pod.UID = uid
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod,
			corev1.SchemeGroupVersion.WithKind("Pod"))}
	}
}

// Leaving deletes a claim, which waits for a finalizer.
func Leaving(c *resourcev1.ResourceClaim) { c.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }
