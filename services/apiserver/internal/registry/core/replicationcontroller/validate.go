package replicationcontroller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/core/podtemplate"
)

var (
	specPath     = field.NewPath("spec")
	templatePath = specPath.Child("template")
	statusPath   = field.NewPath("status")
)

// Validate returns what is wrong with the spec of a defaulted ReplicationController.
func Validate(rc *corev1.ReplicationController) field.ErrorList {
	spec := &rc.Spec
	errs := fieldcheck.NonNegativePtr(spec.Replicas, specPath.Child("replicas"))
	errs = append(errs, fieldcheck.NonNegative(spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	if len(spec.Selector) == 0 {
		errs = append(errs, field.Required(specPath.Child("selector"), ""))
	}
	if spec.Template == nil {
		return append(errs, field.Required(templatePath, ""))
	}
	if selector := labels.SelectorFromSet(spec.Selector); !selector.Matches(labels.Set(spec.Template.Labels)) {
		errs = append(errs, field.Invalid(templatePath.Child("metadata", "labels"), spec.Template.Labels,
			fieldcheck.SelectorMismatch))
	}
	return append(errs, podtemplate.ValidateAlwaysRunning(spec.Template, templatePath, "ReplicationController")...)
}

// ValidateUpdate returns what is wrong with rc as the successor of old.
func ValidateUpdate(rc, _ *corev1.ReplicationController) field.ErrorList { return Validate(rc) }

// ValidateStatusUpdate returns what is wrong with rc's status: counts that contradict each other.
func ValidateStatusUpdate(rc, _ *corev1.ReplicationController) field.ErrorList {
	status := &rc.Status
	errs := fieldcheck.NonNegative(status.ObservedGeneration, statusPath.Child("observedGeneration"))
	return append(errs, fieldcheck.ReplicaCounts(status.Replicas, status.ReadyReplicas, status.AvailableReplicas,
		statusPath, fieldcheck.Count{Name: "fullyLabeledReplicas", Value: status.FullyLabeledReplicas})...)
}
