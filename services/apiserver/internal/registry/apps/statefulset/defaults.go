package statefulset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/registry/core/persistentvolumeclaim"
)

// The values of the fields that a client may leave out.
const (
	defaultReplicas             = 1
	defaultRevisionHistoryLimit = 10
	defaultPartition            = 0
	defaultMaxUnavailable       = 1
)

// Default fills in the fields that s leaves out.
func Default(s *appsv1.StatefulSet) {
	spec := &s.Spec
	podspec.SetTemplateDefaults(&spec.Template)
	defaults.SetPtr(&spec.Replicas, defaultReplicas)
	defaults.SetPtr(&spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
	defaults.Set(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	setStrategyDefaults(&spec.UpdateStrategy)
	if spec.PersistentVolumeClaimRetentionPolicy == nil {
		spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	retention := spec.PersistentVolumeClaimRetentionPolicy
	defaults.Set(&retention.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaults.Set(&retention.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		defaults.Set(&claim.APIVersion, corev1.SchemeGroupVersion.String())
		defaults.Set(&claim.Kind, "PersistentVolumeClaim")
		persistentvolumeclaim.Default(claim)
	}
}

func setStrategyDefaults(strategy *appsv1.StatefulSetUpdateStrategy) {
	defaults.Set(&strategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if strategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return
	}
	if strategy.RollingUpdate == nil {
		strategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
	}
	defaults.SetPtr(&strategy.RollingUpdate.Partition, defaultPartition)
	defaults.SetPtr(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(defaultMaxUnavailable))
}
