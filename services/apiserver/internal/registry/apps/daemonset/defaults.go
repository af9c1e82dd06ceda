package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/podspec"
)

// The values of the fields that a client may leave out.
const (
	defaultRevisionHistoryLimit = 10
	defaultMaxUnavailable       = 1
	defaultMaxSurge             = 0
)

// Default fills in the fields that d leaves out.
func Default(d *appsv1.DaemonSet) {
	spec := &d.Spec
	podspec.SetTemplateDefaults(&spec.Template)
	defaults.SetPtr(&spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
	strategy := &spec.UpdateStrategy
	defaults.Set(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return
	}
	if strategy.RollingUpdate == nil {
		strategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
	}
	defaults.SetPtr(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(defaultMaxUnavailable))
	defaults.SetPtr(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(defaultMaxSurge))
}
