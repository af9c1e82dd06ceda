package podspec

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// Options says where the spec stands.
type Options struct {
	// Template is true for a spec that Pods will be made from: it carries no ephemeral containers, and what only the
	// Pods are defaulted with may be missing.
	Template bool
	// DeadlineLowered is true for a Pod whose activeDeadlineSeconds an update may have lowered to nothing.
	DeadlineLowered bool
}

// Validate reports every mistake in a defaulted spec.
func Validate(spec *corev1.PodSpec, fldPath *field.Path, opts Options) field.ErrorList {
	if errs := validateBounds(spec, fldPath); len(errs) > 0 {
		return errs
	}
	volumes, errs := validateVolumes(spec.Volumes, fldPath.Child("volumes"))
	claims, claimErrs := validateResourceClaims(spec.ResourceClaims, fldPath.Child("resourceClaims"))
	errs = append(errs, claimErrs...)
	scope := containerScope{spec: spec, volumes: volumes, claims: claims}
	errs = append(errs, scope.validateContainers(fldPath.Child("containers"))...)
	errs = append(errs, scope.validateInitContainers(fldPath.Child("initContainers"))...)
	errs = append(errs, scope.validateEphemeralContainers(fldPath.Child("ephemeralContainers"), opts)...)
	errs = append(errs, scope.validatePodResources(fldPath.Child("resources"))...)
	errs = append(errs, validateLifetime(spec, fldPath, opts)...)
	errs = append(errs, validateNetwork(spec, fldPath, opts)...)
	errs = append(errs, validatePodSecurity(spec, fldPath)...)
	errs = append(errs, validatePlacement(spec, fldPath)...)
	errs = append(errs, validateReferences(spec, fldPath)...)
	errs = append(errs, validateOS(spec, fldPath)...)
	return errs
}

// ValidateTemplate reports every mistake in a workload's defaulted Pod template: its labels, annotations and spec.
func ValidateTemplate(template *corev1.PodTemplateSpec, fldPath *field.Path, opts Options) field.ErrorList {
	opts.Template = true
	metadata := fldPath.Child("metadata")
	errs := metav1validation.ValidateLabels(template.Labels, metadata.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, metadata.Child("annotations"))...)
	errs = append(errs, ValidateAnnotations(template.Annotations, metadata.Child("annotations"))...)
	return append(errs, Validate(&template.Spec, fldPath.Child("spec"), opts)...)
}

// validateLifetime checks how often and for how long the Pod may run.
func validateLifetime(spec *corev1.PodSpec, fldPath *field.Path, opts Options) field.ErrorList {
	shortest := 1
	if opts.DeadlineLowered {
		shortest = 0
	}
	errs := fieldcheck.RequiredOneOf(spec.RestartPolicy, fldPath.Child("restartPolicy"),
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	if deadline := spec.ActiveDeadlineSeconds; deadline != nil && (*deadline < int64(shortest) ||
		*deadline > math.MaxInt32) {
		message := validation.InclusiveRangeError(shortest, math.MaxInt32)
		errs = append(errs, field.Invalid(fldPath.Child("activeDeadlineSeconds"), *deadline, message))
	}
	if spec.PreemptionPolicy != nil {
		errs = append(errs, fieldcheck.OneOf(*spec.PreemptionPolicy, fldPath.Child("preemptionPolicy"),
			corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	return errs
}

// validateReferences checks the names of the objects that the Pod asks for.
func validateReferences(spec *corev1.PodSpec, fldPath *field.Path) field.ErrorList {
	errs := fieldcheck.Optional(spec.ServiceAccountName, fldPath.Child("serviceAccountName"), fieldcheck.DNSSubdomain)
	errs = append(errs, fieldcheck.Optional(spec.PriorityClassName, fldPath.Child("priorityClassName"),
		fieldcheck.DNSSubdomain)...)
	if spec.RuntimeClassName != nil {
		errs = append(errs, fieldcheck.Messages(*spec.RuntimeClassName, fldPath.Child("runtimeClassName"),
			fieldcheck.DNSSubdomain(*spec.RuntimeClassName))...)
	}
	for i, secret := range spec.ImagePullSecrets {
		errs = append(errs, fieldcheck.Required(secret.Name, fldPath.Child("imagePullSecrets").Index(i).Child("name"),
			fieldcheck.NotEmpty)...)
	}
	return errs
}
