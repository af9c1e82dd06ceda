package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/core/podtemplate"
)

var (
	specPath     = field.NewPath("spec")
	selectorPath = specPath.Child("selector")
	templatePath = specPath.Child("template")
	statusPath   = field.NewPath("status")
)

// Validate returns what is wrong with the spec of a defaulted ReplicaSet.
func Validate(rs *appsv1.ReplicaSet) field.ErrorList {
	spec := &rs.Spec
	errs := fieldcheck.NonNegativePtr(spec.Replicas, specPath.Child("replicas"))
	errs = append(errs, fieldcheck.NonNegative(spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	errs = append(errs, fieldcheck.WorkloadSelector(spec.Selector, spec.Template.Labels, "replicaset",
		selectorPath, templatePath.Child("metadata", "labels"))...)
	return append(errs, podtemplate.ValidateAlwaysRunning(&spec.Template, templatePath, "ReplicaSet")...)
}

// ValidateUpdate returns what is wrong with the spec of rs as the successor of old.
func ValidateUpdate(rs, old *appsv1.ReplicaSet) field.ErrorList {
	errs := Validate(rs)
	return append(errs, fieldcheck.Immutable(rs.Spec.Selector, old.Spec.Selector, selectorPath)...)
}

// ValidateStatusUpdate returns what is wrong with rs's status: counts that contradict each other.
func ValidateStatusUpdate(rs, _ *appsv1.ReplicaSet) field.ErrorList {
	status := &rs.Status
	errs := fieldcheck.NonNegative(status.ObservedGeneration, statusPath.Child("observedGeneration"))
	errs = append(errs, fieldcheck.NonNegativePtr(status.TerminatingReplicas,
		statusPath.Child("terminatingReplicas"))...)
	return append(errs, fieldcheck.ReplicaCounts(status.Replicas, status.ReadyReplicas,
		status.AvailableReplicas, statusPath,
		fieldcheck.Count{Name: "fullyLabeledReplicas", Value: status.FullyLabeledReplicas})...)
}
