package deployment

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

	strategyTypes = []appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType,
		appsv1.RollingUpdateDeploymentStrategyType}
)

// Validate returns what is wrong with the spec of a defaulted Deployment.
func Validate(d *appsv1.Deployment) field.ErrorList {
	spec := &d.Spec
	errs := fieldcheck.NonNegativePtr(spec.Replicas, specPath.Child("replicas"))
	errs = append(errs, fieldcheck.WorkloadSelector(spec.Selector, spec.Template.Labels, "deployment",
		selectorPath, templatePath.Child("metadata", "labels"))...)
	errs = append(errs, podtemplate.ValidateAlwaysRunning(&spec.Template, templatePath, "Deployment")...)
	errs = append(errs, validateStrategy(&spec.Strategy, specPath.Child("strategy"))...)
	errs = append(errs, fieldcheck.NonNegative(spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(spec.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
	return append(errs, validateProgressDeadline(spec)...)
}

// ValidateUpdate returns what is wrong with the spec of d as the successor of old.
func ValidateUpdate(d, old *appsv1.Deployment) field.ErrorList {
	errs := Validate(d)
	return append(errs, fieldcheck.Immutable(d.Spec.Selector, old.Spec.Selector, selectorPath)...)
}

func validateStrategy(strategy *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	rollingUpdatePath := path.Child("rollingUpdate")
	switch strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if strategy.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(rollingUpdatePath,
				"may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
		return validateRollingUpdate(strategy.RollingUpdate, rollingUpdatePath)
	}
	return fieldcheck.OneOf(strategy.Type, path.Child("type"), strategyTypes...)
}

func validateRollingUpdate(rollingUpdate *appsv1.RollingUpdateDeployment, path *field.Path) field.ErrorList {
	if rollingUpdate == nil || rollingUpdate.MaxUnavailable == nil || rollingUpdate.MaxSurge == nil {
		return field.ErrorList{field.Required(path,
			"maxUnavailable and maxSurge must be set when strategy `type` is 'RollingUpdate'")}
	}
	maxUnavailable, maxSurge := *rollingUpdate.MaxUnavailable, *rollingUpdate.MaxSurge
	maxUnavailablePath := path.Child("maxUnavailable")
	errs := fieldcheck.NonNegativeOrPercent(maxUnavailable, maxUnavailablePath)
	errs = append(errs, fieldcheck.NonNegativeOrPercent(maxSurge, path.Child("maxSurge"))...)
	if fieldcheck.IsZero(maxUnavailable) && fieldcheck.IsZero(maxSurge) {
		errs = append(errs, field.Invalid(maxUnavailablePath, maxUnavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, fieldcheck.AtMostHundredPercent(maxUnavailable, maxUnavailablePath)...)
}

func validateProgressDeadline(spec *appsv1.DeploymentSpec) field.ErrorList {
	if spec.ProgressDeadlineSeconds == nil {
		return nil
	}
	path := specPath.Child("progressDeadlineSeconds")
	errs := fieldcheck.NonNegative(*spec.ProgressDeadlineSeconds, path)
	if *spec.ProgressDeadlineSeconds <= spec.MinReadySeconds {
		errs = append(errs, field.Invalid(path, *spec.ProgressDeadlineSeconds, "must be greater than minReadySeconds"))
	}
	return errs
}
