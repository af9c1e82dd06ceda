package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

var statusPath = field.NewPath("status")

// ValidateStatusUpdate returns what is wrong with d's status as the successor of old's: counts that contradict each
// other, or a collision count that goes down and so would let two templates share a name.
func ValidateStatusUpdate(d, old *appsv1.Deployment) field.ErrorList {
	status := &d.Status
	errs := validateCounts(status)
	return append(errs, fieldcheck.CollisionCount(status.CollisionCount, old.Status.CollisionCount, statusPath)...)
}

func validateCounts(status *appsv1.DeploymentStatus) field.ErrorList {
	errs := fieldcheck.NonNegative(status.ObservedGeneration, statusPath.Child("observedGeneration"))
	errs = append(errs, fieldcheck.NonNegativePtr(status.TerminatingReplicas,
		statusPath.Child("terminatingReplicas"))...)
	errs = append(errs, fieldcheck.NonNegative(status.UnavailableReplicas, statusPath.Child("unavailableReplicas"))...)
	return append(errs, fieldcheck.ReplicaCounts(status.Replicas, status.ReadyReplicas,
		status.AvailableReplicas, statusPath,
		fieldcheck.Count{Name: "updatedReplicas", Value: status.UpdatedReplicas})...)
}
