package fieldcheck

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Count is one count of replicas in a workload's status.
type Count struct {
	// Name is the field's, for example "updatedReplicas".
	Name  string
	Value int32
}

// ReplicaCounts wants counts of 0 or more that do not contradict each other: no part is more than all, and what is
// available is ready. others are the parts besides those two.
func ReplicaCounts(all, ready, available int32, status *field.Path, others ...Count) field.ErrorList {
	errs := NonNegative(all, status.Child("replicas"))
	for _, part := range append(others, Count{"readyReplicas", ready}, Count{"availableReplicas", available}) {
		path := status.Child(part.Name)
		errs = append(errs, NonNegative(part.Value, path)...)
		errs = append(errs, AtMost(part.Value, path, all, "cannot be greater than status.replicas")...)
	}
	return append(errs, AtMost(available, status.Child("availableReplicas"), ready,
		"cannot be greater than readyReplicas")...)
}

// CollisionCount wants the count that goes into the names of revisions not to go down, which would let two templates
// share a name.
func CollisionCount(count, old *int32, status *field.Path) field.ErrorList {
	path := status.Child("collisionCount")
	errs := NonNegativePtr(count, path)
	if old != nil && ptr.Deref(count, 0) < *old {
		errs = append(errs, field.Invalid(path, ptr.Deref(count, 0), "cannot be decremented"))
	}
	return errs
}
