package resourceclaim

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Settled: "the ResourceClaims that it asks for by templates are made"}
	for _, made := range plan.Create {
		a.Do(1, "creates a ResourceClaim for %s", made.Name)
	}
	for _, asked := range slices.Sorted(maps.Keys(plan.Names)) {
		a.Do(1, "says in the Pod's status that %s is ResourceClaim %s", asked, plan.Names[asked])
	}
	for _, template := range plan.Missing {
		a.Wait(explain.Wait{Since: in.Pod.CreationTimestamp.Time, Reason: reasonFailed,
			For: fmt.Sprintf("ResourceClaimTemplate %s, which is not there", template), Ends: "it is created"})
	}
	for _, claim := range plan.Leaving {
		a.Wait(explain.Wait{Since: claim.DeletionTimestamp.Time, Reason: "ClaimTerminating",
			For:  fmt.Sprintf("ResourceClaim %s, which is being deleted, to be gone", claim.Name),
			Ends: "it is, and another is made"})
	}
	return a
}

// leaves says why there is nothing to decide about a Pod.
func leaves(pod *corev1.Pod) string {
	if len(pod.Spec.ResourceClaims) == 0 {
		return "has nothing to decide: the Pod claims no devices"
	}
	return "has nothing to decide: the Pod asks for no claim by a template, has ended or is being deleted"
}
