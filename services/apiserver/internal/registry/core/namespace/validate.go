package namespace

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// Validate returns what is wrong with a new Namespace.
func Validate(ns *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	for i, finalizer := range ns.Spec.Finalizers {
		errs = append(errs, validateFinalizer(string(finalizer), field.NewPath("spec", "finalizers").Index(i))...)
	}
	return errs
}

// ValidateStatusUpdate wants the phase to agree with whether the namespace is deleted.
func ValidateStatusUpdate(ns, _ *corev1.Namespace) field.ErrorList {
	path := field.NewPath("status", "phase")
	if ns.DeletionTimestamp.IsZero() {
		if ns.Status.Phase != corev1.NamespaceActive {
			return field.ErrorList{field.Invalid(path, ns.Status.Phase,
				"may only be 'Active' if `deletionTimestamp` is empty")}
		}
		return nil
	}
	if ns.Status.Phase != corev1.NamespaceTerminating {
		return field.ErrorList{field.Invalid(path, ns.Status.Phase,
			"may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}

// ValidateFinalizeUpdate returns what is wrong with the finalizers of ns.
func ValidateFinalizeUpdate(ns, _ *corev1.Namespace) field.ErrorList { return Validate(ns) }

func validateFinalizer(name string, path *field.Path) field.ErrorList {
	errs := fieldcheck.Messages(name, path, validation.IsQualifiedName(name))
	if len(errs) == 0 && name != string(corev1.FinalizerKubernetes) && !strings.Contains(name, "/") {
		errs = append(errs, field.Invalid(path, name,
			"name is neither a standard finalizer name nor is it fully qualified"))
	}
	return errs
}
