package lease

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

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
	errs = append(errs, fieldcheck.NonNegativePtr(spec.LeaseTransitions, path.Child("leaseTransitions"))...)
	return append(errs, validateStrategy(spec, path)...)
}

// validateStrategy checks how a coordinated election picks the holder.
func validateStrategy(spec *coordinationv1.LeaseSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Strategy != nil && *spec.Strategy != coordinationv1.OldestEmulationVersion {
		path := path.Child("strategy")
		errs = append(errs, fieldcheck.Messages(*spec.Strategy, path,
			validation.IsQualifiedName(string(*spec.Strategy)))...)
	}
	if ptr.Deref(spec.PreferredHolder, "") != "" && ptr.Deref(spec.Strategy, "") == "" {
		errs = append(errs, field.Forbidden(path.Child("preferredHolder"),
			"may only be specified if `strategy` is defined"))
	}
	return errs
}
