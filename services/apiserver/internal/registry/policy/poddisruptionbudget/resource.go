// Package poddisruptionbudget is the API resource poddisruptionbudgets of group policy: how many Pods of an application
// may be evicted at a time.
//
//keelson:decision
package poddisruptionbudget

import (
	policyv1 "k8s.io/api/policy/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the PodDisruptionBudget with its /status.
var Resource = resource.Resource[*policyv1.PodDisruptionBudget]{
	Group:      policyv1.GroupName,
	Name:       "poddisruptionbudgets",
	Singular:   "poddisruptionbudget",
	ShortNames: []string{"pdb"},
	New:        func() *policyv1.PodDisruptionBudget { return &policyv1.PodDisruptionBudget{} },
	NewList:    func() runtime.Object { return &policyv1.PodDisruptionBudgetList{} },
	Spec: resource.PartOf(func(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudgetSpec {
		return &b.Spec
	}),
	Status: resource.PartOf(func(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudgetStatus {
		return &b.Status
	}),
	// Evictions count down what a budget allows: whoever writes it says which version was read.
	Strategy: resource.Strategy[*policyv1.PodDisruptionBudget]{Validate: Validate, RequireResourceVersion: true},
	StatusStrategy: resource.Strategy[*policyv1.PodDisruptionBudget]{
		ValidateUpdate:         func(b, _ *policyv1.PodDisruptionBudget) field.ErrorList { return ValidateStatus(b) },
		RequireResourceVersion: true,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*policyv1.PodDisruptionBudget](),
		resource.Column("Min Available", "string", "The minimum number of pods that must be available.",
			func(b *policyv1.PodDisruptionBudget) any { return bound(b.Spec.MinAvailable) }),
		resource.Column("Max Unavailable", "string", "The maximum number of pods that may be unavailable.",
			func(b *policyv1.PodDisruptionBudget) any { return bound(b.Spec.MaxUnavailable) }),
		resource.Column("Allowed Disruptions", "integer",
			"Calculated number of pods that may be disrupted at this time.",
			func(b *policyv1.PodDisruptionBudget) any { return int64(b.Status.DisruptionsAllowed) }),
		resource.AgeColumn[*policyv1.PodDisruptionBudget](),
	),
}

func bound(value *intstr.IntOrString) string {
	if value == nil {
		return "N/A"
	}
	return value.String()
}

// Validate returns what is wrong with the spec of b. Without either bound a budget restrains nothing.
func Validate(b *policyv1.PodDisruptionBudget) field.ErrorList {
	spec, path := &b.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(path, *spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, validateBound(spec.MinAvailable, path.Child("minAvailable"))...)
	errs = append(errs, validateBound(spec.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, fieldcheck.LabelSelector(spec.Selector, path.Child("selector"))...)
	return append(errs, fieldcheck.OneOfPtr(spec.UnhealthyPodEvictionPolicy, path.Child("unhealthyPodEvictionPolicy"),
		policyv1.AlwaysAllow, policyv1.IfHealthyBudget)...)
}

func validateBound(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return append(fieldcheck.NonNegativeOrPercent(*value, path), fieldcheck.AtMostHundredPercent(*value, path)...)
}

// ValidateStatus returns what is wrong with the status of b.
func ValidateStatus(b *policyv1.PodDisruptionBudget) field.ErrorList {
	status, path := &b.Status, field.NewPath("status")
	errs := metavalidation.ValidateConditions(status.Conditions, path.Child("conditions"))
	for _, count := range []fieldcheck.Count{
		{Name: "disruptionsAllowed", Value: status.DisruptionsAllowed},
		{Name: "currentHealthy", Value: status.CurrentHealthy},
		{Name: "desiredHealthy", Value: status.DesiredHealthy},
		{Name: "expectedPods", Value: status.ExpectedPods},
	} {
		errs = append(errs, fieldcheck.NonNegative(count.Value, path.Child(count.Name))...)
	}
	return errs
}
