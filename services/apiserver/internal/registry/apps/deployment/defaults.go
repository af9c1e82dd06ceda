package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/podspec"
)

// The values of the fields that a client may leave out.
const (
	defaultReplicas                = 1
	defaultRevisionHistoryLimit    = 10
	defaultProgressDeadlineSeconds = 600
	defaultRollingUpdateShare      = "25%"
)

// Default fills in the fields that d leaves out. In apps/v1 neither the selector nor the labels are among them.
func Default(d *appsv1.Deployment) {
	spec := &d.Spec
	podspec.SetTemplateDefaults(&spec.Template)
	defaults.SetPtr(&spec.Replicas, defaultReplicas)
	defaults.SetPtr(&spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
	defaults.SetPtr(&spec.ProgressDeadlineSeconds, defaultProgressDeadlineSeconds)
	setStrategyDefaults(&spec.Strategy)
}

func setStrategyDefaults(strategy *appsv1.DeploymentStrategy) {
	defaults.Set(&strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return
	}
	if strategy.RollingUpdate == nil {
		strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
	}
	defaults.SetPtr(&strategy.RollingUpdate.MaxUnavailable, intstr.FromString(defaultRollingUpdateShare))
	defaults.SetPtr(&strategy.RollingUpdate.MaxSurge, intstr.FromString(defaultRollingUpdateShare))
}
