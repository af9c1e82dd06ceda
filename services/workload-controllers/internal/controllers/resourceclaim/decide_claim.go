package resourceclaim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
)

// ClaimInput is all that a decision about a claim depends on. DecideClaim changes none of it.
type ClaimInput struct {
	Claim *resourcev1.ResourceClaim
	// Ended are the consuming Pods that no longer need the claim. A Pod that nothing is known about does not count as
	// ended.
	Ended map[types.UID]bool
	// OwnerEnded says that the Pod that the claim was created for no longer needs it.
	OwnerEnded bool
}

// ClaimPlan names every effect of one pass.
type ClaimPlan struct {
	// Status is what the claim's status must be.
	Status resourcev1.ResourceClaimStatus
	// Unprotect says to remove the finalizer: the claim has no devices any more.
	Unprotect bool
	// Delete says to delete the unneeded claim.
	Delete bool
}

// DecideClaim releases the claim from Pods that have ended. With the last of them the claim loses its devices, so
// that another Pod can get suitable ones. Consumers other than Pods are left to others.
func DecideClaim(in ClaimInput) ClaimPlan {
	var plan ClaimPlan
	in.Claim.Status.DeepCopyInto(&plan.Status)
	plan.Status.ReservedFor = slices.DeleteFunc(plan.Status.ReservedFor,
		func(consumer resourcev1.ResourceClaimConsumerReference) bool {
			return isPod(consumer) && in.Ended[consumer.UID]
		})
	leaving := in.Claim.DeletionTimestamp != nil
	if len(plan.Status.ReservedFor) > 0 {
		return plan
	}
	plan.Status.ReservedFor = nil
	freed := len(in.Claim.Status.ReservedFor) > 0
	// The finalizer says that the allocator of the devices leaves their release to this controller.
	if isProtected(in.Claim) && (freed || leaving) {
		plan.Status.Allocation, plan.Unprotect = nil, true
	}
	plan.Delete = in.OwnerEnded && !leaving
	return plan
}

// hasEnded reports whether a Pod no longer needs its claims: it has ended, or will never run.
func hasEnded(pod *corev1.Pod) bool {
	return podview.IsTerminal(pod) || pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
}

func isPod(consumer resourcev1.ResourceClaimConsumerReference) bool {
	return consumer.APIGroup == "" && consumer.Resource == "pods"
}

func isProtected(claim *resourcev1.ResourceClaim) bool {
	return slices.Contains(claim.Finalizers, resourcev1.Finalizer)
}
