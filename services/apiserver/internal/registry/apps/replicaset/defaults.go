package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/kit/defaults"
	"keelson.dev/kit/podspec"
)

const defaultReplicas = 1

// Default fills in the fields that rs leaves out. In apps/v1 neither the selector nor the labels are among them.
func Default(rs *appsv1.ReplicaSet) {
	podspec.SetTemplateDefaults(&rs.Spec.Template)
	defaults.SetPtr(&rs.Spec.Replicas, defaultReplicas)
}
