package priorityclass

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

// Validate returns what is wrong with a defaulted PriorityClass.
func Validate(pc *schedulingv1.PriorityClass) field.ErrorList {
	errs := fieldcheck.OneOf(ptr.Deref(pc.PreemptionPolicy, ""), field.NewPath("preemptionPolicy"),
		corev1.PreemptNever, corev1.PreemptLowerPriority)
	if strings.HasPrefix(pc.Name, SystemPrefix) {
		return append(errs, validateSystem(pc)...)
	}
	if pc.Value > HighestUserValue {
		errs = append(errs, field.Forbidden(field.NewPath("value"),
			fmt.Sprintf("maximum allowed value of a user defined priority is %d", HighestUserValue)))
	}
	return errs
}

// ValidateUpdate returns what is wrong with pc as the successor of old. What Pods have taken from a class never
// changes.
func ValidateUpdate(pc, old *schedulingv1.PriorityClass) field.ErrorList {
	errs := Validate(pc)
	if pc.Value != old.Value {
		errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
	}
	return append(errs, fieldcheck.Immutable(pc.PreemptionPolicy, old.PreemptionPolicy,
		field.NewPath("preemptionPolicy"))...)
}

// validateSystem lets the system's own classes pass as they are, and no other class with their prefix.
func validateSystem(pc *schedulingv1.PriorityClass) field.ErrorList {
	const reserved = "priority class names with '" + SystemPrefix + "' prefix are reserved for system use only. error: "
	path := field.NewPath("metadata", "name")
	known := systemNamed(pc.Name)
	switch {
	case known == nil:
		return field.ErrorList{field.Forbidden(path, reserved+pc.Name+" is not a known system priority class")}
	case pc.Value != known.Value:
		return field.ErrorList{field.Forbidden(path, reserved+fmt.Sprintf("value of %s PriorityClass must be %d",
			pc.Name, known.Value))}
	case pc.GlobalDefault != known.GlobalDefault:
		return field.ErrorList{field.Forbidden(path,
			reserved+fmt.Sprintf("globalDefault of %s PriorityClass must be %t", pc.Name, known.GlobalDefault))}
	}
	return nil
}
