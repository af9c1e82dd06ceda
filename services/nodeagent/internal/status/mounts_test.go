package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/observed"
)

// A status reports on the mounts of an instance: whether one is recursively read-only, and which image a volume is.
// It reports nothing before an instance exists.
func TestMounts(t *testing.T) {
	disabled, enabled := ptr.To(corev1.RecursiveReadOnlyDisabled), ptr.To(corev1.RecursiveReadOnlyEnabled)
	asks := func(in *Input) {
		in.Pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: "disk", MountPath: "/disk", RecursiveReadOnly: ptr.To(corev1.RecursiveReadOnlyIfPossible)},
			{Name: "map", MountPath: "/map", ReadOnly: true},
			{Name: "map", MountPath: "/whole", ReadOnly: true,
				RecursiveReadOnly: ptr.To(corev1.RecursiveReadOnlyIfPossible)},
			{Name: "image", MountPath: "/image"}, {Name: "late", MountPath: "/late", ReadOnly: true}}
	}
	has := func(in *Input) {
		in.Observed.Containers[0].Mounts = []observed.Mount{{ContainerPath: "/etc/hosts"}, {ContainerPath: "/disk"},
			{ContainerPath: "/whole", RecursiveReadOnly: true}, {ContainerPath: "/map"},
			{ContainerPath: "/image", Image: "sha256:1"}}
	}
	if got := Compute(with(asks)).ContainerStatuses[0].VolumeMounts; got != nil {
		t.Errorf("before there is an instance: %v", got)
	}
	want := []corev1.VolumeMountStatus{{Name: "disk", MountPath: "/disk"},
		{Name: "map", MountPath: "/map", ReadOnly: true, RecursiveReadOnly: disabled},
		{Name: "map", MountPath: "/whole", ReadOnly: true, RecursiveReadOnly: enabled},
		{Name: "image", MountPath: "/image",
			VolumeStatus: &corev1.VolumeStatus{Image: &corev1.ImageVolumeStatus{ImageRef: "sha256:1"}}},
		{Name: "late", MountPath: "/late", ReadOnly: true, RecursiveReadOnly: disabled}}
	got := Compute(with(asks, instance("m", 0, observed.Running), has)).ContainerStatuses[0].VolumeMounts
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
