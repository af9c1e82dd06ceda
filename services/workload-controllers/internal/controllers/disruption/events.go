package disruption

import (
	policyv1 "k8s.io/api/policy/v1"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "controllermanager"

// notDeleted reports that a Pod was evicted and stayed.
func notDeleted(budget *policyv1.PodDisruptionBudget) events.Event {
	return events.Warning("NotDeleted", "Pod was expected by PDB %s/%s to be deleted but it wasn't", budget.Namespace,
		budget.Name)
}

// unknown reports why the number of intended Pods is unknown.
func unknown(err error) events.Event {
	return events.Warning("CalculateExpectedPodCountFailed", "Failed to calculate the number of expected pods: %v", err)
}
