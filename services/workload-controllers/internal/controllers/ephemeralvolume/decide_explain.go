package ephemeralvolume

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Settled: fmt.Sprintf("the claims of its ephemeral volumes are made: %s",
		strings.Join(claimNames(in.Pod), ", "))}
	for _, made := range plan.Create {
		a.Do(1, "creates PersistentVolumeClaim %s for volume %s", made.Claim.Name, made.Volume)
	}
	for _, claim := range plan.Foreign {
		a.Wait(explain.Wait{Since: in.Pod.CreationTimestamp.Time, Reason: reasonFailedBinding,
			For:  fmt.Sprintf("the name of PersistentVolumeClaim %s, which is not this Pod's, to be free", claim.Name),
			Ends: "that claim is deleted"})
	}
	for _, claim := range plan.Leaving {
		a.Wait(explain.Wait{Since: claim.DeletionTimestamp.Time, Reason: "ClaimTerminating",
			For:  fmt.Sprintf("PersistentVolumeClaim %s, which is being deleted, to be gone", claim.Name),
			Ends: "it is, and another is made"})
	}
	return a
}

// leaves returns why a Pod needs no decision, or "".
func leaves(pod *corev1.Pod) string {
	if len(claimNames(pod)) == 0 {
		return "has nothing to decide: the Pod has no ephemeral volume that needs a claim"
	}
	return "has nothing to decide: the Pod has ended or is being deleted, and gets no claim any more"
}
