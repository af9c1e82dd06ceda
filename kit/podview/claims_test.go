package podview

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClaimNames(t *testing.T) {
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "db"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "none", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}},
		{Name: "both", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim,
			Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}}}
	if got, want := ClaimNames(pod), []string{"web-scratch", "db", "db"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
