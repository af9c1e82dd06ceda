package lease

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// Validate returns what is wrong with a Lease.
func Validate(l *coordinationv1.Lease) field.ErrorList {
	spec, path := &l.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if spec.LeaseDurationSeconds != nil && *spec.LeaseDurationSeconds <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *spec.LeaseDurationSeconds,
			"must be greater than 0"))
	}
	return append(errs, fieldcheck.NonNegativePtr(spec.LeaseTransitions, path.Child("leaseTransitions"))...)
}
