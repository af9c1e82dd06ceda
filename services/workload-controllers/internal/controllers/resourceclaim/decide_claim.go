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
	// Ended are the Pods for which the claim is and which need it no more. Of a Pod of which nothing is known it is
	// not said that it has ended.
	Ended map[types.UID]bool
	// OwnerEnded says that the claim was made for a Pod that needs it no more.
	OwnerEnded bool
}

// ClaimPlan names every effect of one pass.
type ClaimPlan struct {
	// Status is what the claim's is to be.
	Status resourcev1.ResourceClaimStatus
	// Unprotect says that the claim may go as soon as it is deleted: it has no devices any more.
	Unprotect bool
	// Delete says that nobody needs the claim.
	Delete bool
}

// DecideClaim takes the claim from Pods that have ended. With the last of them it loses its devices, so that another
// Pod gets those that suit it. Consumers that are no Pods are others' matter.
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
	// The finalizer says that whoever gave the claim its devices leaves it to this controller to take them.
	if isProtected(in.Claim) && (freed || leaving) {
		plan.Status.Allocation, plan.Unprotect = nil, true
	}
	plan.Delete = in.OwnerEnded && !leaving
	return plan
}

// hasEnded reports whether a Pod needs its claims no more: it has run to its end, or never will run.
func hasEnded(pod *corev1.Pod) bool {
	return podview.IsTerminal(pod) || pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
}

func isPod(consumer resourcev1.ResourceClaimConsumerReference) bool {
	return consumer.APIGroup == "" && consumer.Resource == "pods"
}

func isProtected(claim *resourcev1.ResourceClaim) bool {
	return slices.Contains(claim.Finalizers, resourcev1.Finalizer)
}
