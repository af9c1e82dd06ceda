package persistentvolumeclaim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
)

var (
	specPath   = field.NewPath("spec")
	sizePath   = specPath.Child("resources", "requests", "storage")
	statusPath = field.NewPath("status")
)

const immutableSpec = "spec is immutable after creation except resources.requests and volumeAttributesClassName for " +
	"bound claims"

// Validate returns what is wrong with the spec of a defaulted claim.
func Validate(c *corev1.PersistentVolumeClaim) field.ErrorList {
	return podspec.ValidateClaimSpec(&c.Spec, specPath)
}

// ValidateUpdate returns what is wrong with the spec of c as the successor of old. A claim may be given its volume and
// its class once; one that is bound may ask for more room, and for another class of attributes.
func ValidateUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := Validate(c)
	if !equality.Semantic.DeepEqual(unchangeable(c, old), old.Spec) {
		errs = append(errs, field.Forbidden(specPath, immutableSpec))
	}
	size, before := c.Spec.Resources.Requests[corev1.ResourceStorage],
		old.Spec.Resources.Requests[corev1.ResourceStorage]
	if held, known := old.Status.Capacity[corev1.ResourceStorage]; size.Cmp(before) < 0 && known && size.Cmp(held) < 0 {
		errs = append(errs, field.Forbidden(sizePath, "field can not be less than status.capacity"))
	}
	errs = append(errs, validateAnnotatedClass(c, old)...)
	return append(errs, validateAttributesClass(c, old)...)
}

// validateAnnotatedClass keeps the class that a claim names in the older way, by which quotas count the claim. It may
// move into the spec.
func validateAnnotatedClass(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	const annotation = corev1.BetaStorageClassAnnotation
	class, before := c.Annotations[annotation], old.Annotations[annotation]
	moved := class == "" && old.Spec.StorageClassName == nil && ptr.Deref(c.Spec.StorageClassName, "") == before
	if class == before || moved {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").
		Key(annotation), class, "field is immutable")}
}

// unchangeable is the spec of c with what may differ taken from old.
func unchangeable(c, old *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimSpec {
	spec := *c.Spec.DeepCopy()
	if old.Spec.VolumeName == "" {
		spec.VolumeName = ""
	}
	if old.Spec.StorageClassName == nil {
		spec.StorageClassName = nil
	}
	if old.Status.Phase == corev1.ClaimBound {
		spec.Resources.Requests = old.Spec.Resources.Requests
	}
	spec.VolumeAttributesClassName = old.Spec.VolumeAttributesClassName
	return spec
}

func validateAttributesClass(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	class, before := c.Spec.VolumeAttributesClassName, old.Spec.VolumeAttributesClassName
	if equality.Semantic.DeepEqual(class, before) {
		return nil
	}
	path := specPath.Child("volumeAttributesClassName")
	switch {
	case old.Status.Phase != corev1.ClaimBound && old.Spec.VolumeName == "":
		return field.ErrorList{field.Forbidden(specPath, immutableSpec)}
	case before != nil && class == nil:
		return field.ErrorList{field.Forbidden(path, "update from non-nil value to nil is forbidden")}
	}
	return nil
}

// ValidateStatusUpdate returns what is wrong with c's status: amounts below zero, and a modification in no known state.
func ValidateStatusUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := validateAnnotatedClass(c, old)
	errs = append(errs, fieldcheck.Amounts(c.Status.Capacity, statusPath.Child("capacity"))...)
	errs = append(errs, fieldcheck.Amounts(c.Status.AllocatedResources, statusPath.Child("allocatedResources"))...)
	if modify := c.Status.ModifyVolumeStatus; modify != nil {
		errs = append(errs, fieldcheck.RequiredOneOf(modify.Status, statusPath.Child("modifyVolumeStatus", "status"),
			corev1.PersistentVolumeClaimModifyVolumePending, corev1.PersistentVolumeClaimModifyVolumeInProgress,
			corev1.PersistentVolumeClaimModifyVolumeInfeasible)...)
	}
	return errs
}
