package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/core/podspec"
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
	setIfNil(&spec.Replicas, defaultReplicas)
	setIfNil(&spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
	setIfNil(&spec.ProgressDeadlineSeconds, defaultProgressDeadlineSeconds)
	setStrategyDefaults(&spec.Strategy)
}

func setStrategyDefaults(strategy *appsv1.DeploymentStrategy) {
	if strategy.Type == "" {
		strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return
	}
	if strategy.RollingUpdate == nil {
		strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
	}
	setIfNil(&strategy.RollingUpdate.MaxUnavailable, intstr.FromString(defaultRollingUpdateShare))
	setIfNil(&strategy.RollingUpdate.MaxSurge, intstr.FromString(defaultRollingUpdateShare))
}

func setIfNil[V any](target **V, value V) {
	if *target == nil {
		*target = ptr.To(value)
	}
}
