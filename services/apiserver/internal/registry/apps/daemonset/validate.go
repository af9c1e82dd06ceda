package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/core/podtemplate"
)

var (
	specPath     = field.NewPath("spec")
	selectorPath = specPath.Child("selector")
	statusPath   = field.NewPath("status")
)

// Validate returns what is wrong with the spec of a defaulted DaemonSet.
func Validate(d *appsv1.DaemonSet) field.ErrorList {
	spec := &d.Spec
	templatePath := specPath.Child("template")
	errs := fieldcheck.WorkloadSelector(spec.Selector, spec.Template.Labels, "daemonset", selectorPath,
		templatePath.Child("metadata", "labels"))
	errs = append(errs, podtemplate.ValidateAlwaysRunning(&spec.Template, templatePath, "DaemonSet")...)
	errs = append(errs, fieldcheck.NonNegative(spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(spec.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
	return append(errs, validateUpdateStrategy(&spec.UpdateStrategy, specPath.Child("updateStrategy"))...)
}

// ValidateUpdate returns what is wrong with the spec of d as the successor of old.
func ValidateUpdate(d, old *appsv1.DaemonSet) field.ErrorList {
	errs := Validate(d)
	return append(errs, fieldcheck.Immutable(d.Spec.Selector, old.Spec.Selector, selectorPath)...)
}

func validateUpdateStrategy(strategy *appsv1.DaemonSetUpdateStrategy, path *field.Path) field.ErrorList {
	if strategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return fieldcheck.RequiredOneOf(strategy.Type, path.Child("type"), appsv1.RollingUpdateDaemonSetStrategyType,
			appsv1.OnDeleteDaemonSetStrategyType)
	}
	rollingPath, rolling := path.Child("rollingUpdate"), strategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil || rolling.MaxSurge == nil {
		return field.ErrorList{field.Required(rollingPath, "")}
	}
	unavailablePath, surgePath := rollingPath.Child("maxUnavailable"), rollingPath.Child("maxSurge")
	var errs field.ErrorList
	errs = append(errs, fieldcheck.NonNegativeOrPercent(*rolling.MaxUnavailable, unavailablePath)...)
	errs = append(errs, fieldcheck.AtMostHundredPercent(*rolling.MaxUnavailable, unavailablePath)...)
	errs = append(errs, fieldcheck.NonNegativeOrPercent(*rolling.MaxSurge, surgePath)...)
	errs = append(errs, fieldcheck.AtMostHundredPercent(*rolling.MaxSurge, surgePath)...)
	// A node has either the old Pod or the new one for a while, or both: not either and both.
	switch mayLack, maySurge := !fieldcheck.IsZero(*rolling.MaxUnavailable), !fieldcheck.IsZero(*rolling.MaxSurge); {
	case mayLack && maySurge:
		errs = append(errs, field.Invalid(surgePath, rolling.MaxSurge,
			"may not be set when maxUnavailable is non-zero"))
	case !mayLack && !maySurge:
		errs = append(errs, field.Required(unavailablePath, "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

// ValidateStatusUpdate returns what is wrong with d's status: counts below zero, or a collision count that goes down.
func ValidateStatusUpdate(d, old *appsv1.DaemonSet) field.ErrorList {
	status := &d.Status
	errs := fieldcheck.NonNegative(status.ObservedGeneration, statusPath.Child("observedGeneration"))
	for _, count := range []fieldcheck.Count{
		{Name: "currentNumberScheduled", Value: status.CurrentNumberScheduled},
		{Name: "numberMisscheduled", Value: status.NumberMisscheduled},
		{Name: "desiredNumberScheduled", Value: status.DesiredNumberScheduled},
		{Name: "numberReady", Value: status.NumberReady},
		{Name: "updatedNumberScheduled", Value: status.UpdatedNumberScheduled},
		{Name: "numberAvailable", Value: status.NumberAvailable},
		{Name: "numberUnavailable", Value: status.NumberUnavailable},
	} {
		errs = append(errs, fieldcheck.NonNegative(count.Value, statusPath.Child(count.Name))...)
	}
	return append(errs, fieldcheck.CollisionCount(status.CollisionCount, old.Status.CollisionCount, statusPath)...)
}
