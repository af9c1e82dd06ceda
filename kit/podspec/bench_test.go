package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Defaulting runs on every Pod that is decoded, also from the store.
func BenchmarkSetDefaults(b *testing.B) {
	spec := nginx()
	SetDefaults(spec)
	for b.Loop() {
		SetDefaults(spec)
	}
}

func BenchmarkValidate(b *testing.B) {
	spec, path := nginx(), field.NewPath("spec")
	withVolume(validVolume())(spec)
	SetDefaults(spec)
	for b.Loop() {
		Validate(spec, path, Options{})
	}
}

// validVolume is what the server adds to every Pod: its token.
func validVolume() corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named,
			Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
	}}}
}
