package pod

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podspec"
)

// Default fills the fields that a client left out.
func Default(p *corev1.Pod) { podspec.SetDefaults(&p.Spec) }
