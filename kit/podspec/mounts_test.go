package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// What a mount may say about what is mounted below it and about the host, beside what TestValidateMounts refuses.
func TestMountModes(t *testing.T) {
	mount := func(change func(*corev1.VolumeMount)) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			withVolume(corev1.VolumeSource{})(s)
			m := corev1.VolumeMount{Name: "v", MountPath: "/v"}
			change(&m)
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{m}
		}
	}
	readOnly := func(only bool, mode corev1.RecursiveReadOnlyMode,
		propagation *corev1.MountPropagationMode) func(*corev1.PodSpec) {
		return mount(func(m *corev1.VolumeMount) {
			m.ReadOnly, m.RecursiveReadOnly, m.MountPropagation = only, &mode, propagation
		})
	}
	none, fromHost := ptr.To(corev1.MountPropagationNone), ptr.To(corev1.MountPropagationHostToContainer)
	const at = "spec.containers[0].volumeMounts[0]"
	const writable = at + ".recursiveReadOnly: Forbidden: may only be specified when readOnly is true"
	const propagated = at +
		".recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified"
	runAll(t, []row{
		{name: "read-only below, not asked for, on a writable mount", change: readOnly(false, "Disabled", fromHost)},
		{name: "read-only below a writable mount", change: readOnly(false, "Enabled", nil), want: []string{writable}},
		{name: "read-only below if possible, on a writable mount", change: readOnly(false, "IfPossible", none),
			want: []string{writable}},
		{name: "read-only below, without propagation", change: readOnly(true, "Enabled", none)},
		{name: "read-only below, with propagation", change: readOnly(true, "Enabled", fromHost),
			want: []string{propagated}},
		{name: "read-only below if possible", change: readOnly(true, "IfPossible", nil)},
		{name: "propagation from the host", change: mount(func(m *corev1.VolumeMount) {
			m.MountPropagation = fromHost
		})},
		{name: "propagation to the host, privilege denied", change: func(s *corev1.PodSpec) {
			mount(func(m *corev1.VolumeMount) { m.MountPropagation = ptr.To(corev1.MountPropagationBidirectional) })(s)
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(false)}
		}, want: []string{at +
			`.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`}},
		{name: "an expanded sub-path", change: mount(func(m *corev1.VolumeMount) { m.SubPathExpr = "$(A)/b" })},
		{name: "an absolute expanded sub-path", change: mount(func(m *corev1.VolumeMount) { m.SubPathExpr = "/b" }),
			want: []string{at + `.subPathExpr: Invalid value: "/b": must be a relative path`}},
		{name: "dots that do not climb", change: mount(func(m *corev1.VolumeMount) { m.SubPath = "a/..b/c.." })},
		{name: "a sub-path that ends by climbing", change: mount(func(m *corev1.VolumeMount) { m.SubPath = "a/.." }),
			want: []string{at + `.subPath: Invalid value: "a/..": must not contain '..'`}},
	})
}

func TestMountPlaces(t *testing.T) {
	two := func(mounts []corev1.VolumeMount, devices ...corev1.VolumeDevice) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: "c"}})(s)
			claimTemplate(func(*corev1.PersistentVolumeClaimSpec) {})(s)
			s.Volumes[1].Name = "w"
			s.Containers[0].VolumeMounts, s.Containers[0].VolumeDevices = mounts, devices
		}
	}
	runAll(t, []row{
		{name: "one volume at two places", change: two([]corev1.VolumeMount{{Name: "v", MountPath: "/a"},
			{Name: "v", MountPath: "/b"}})},
		{name: "two volumes at one place", change: two([]corev1.VolumeMount{{Name: "v", MountPath: "/a"},
			{Name: "w", MountPath: "/a"}}),
			want: []string{`spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique`}},
		{name: "one place in two containers", change: func(s *corev1.PodSpec) {
			two([]corev1.VolumeMount{{Name: "v", MountPath: "/a"}})(s)
			also(corev1.Container{Name: "b", Image: "b",
				VolumeMounts: []corev1.VolumeMount{{Name: "w", MountPath: "/a"}}})(s)
		}},
		{name: "devices of both kinds of claim", change: two(nil, corev1.VolumeDevice{Name: "v", DevicePath: "/dev/v"},
			corev1.VolumeDevice{Name: "w", DevicePath: "/dev/w"})},
		{name: "a device and a directory", change: two([]corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
			corev1.VolumeDevice{Name: "w", DevicePath: "/dev/w"})},
		{name: "a directory in a device's place", change: two([]corev1.VolumeMount{{Name: "v", MountPath: "/dev/w"}},
			corev1.VolumeDevice{Name: "w", DevicePath: "/dev/w"}), want: []string{
			`spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/dev/w": must not already exist as a path in volumeDevices`,
		}},
		{name: "a directory of a device", change: two([]corev1.VolumeMount{{Name: "w", MountPath: "/w"}},
			corev1.VolumeDevice{Name: "w", DevicePath: "/dev/w"}), want: []string{
			`spec.containers[0].volumeMounts[0].name: Invalid value: "w": must not already exist in volumeDevices`}},
		{name: "an init container's mount", change: func(s *corev1.PodSpec) {
			two(nil)(s)
			withInit(corev1.Container{Name: "i", Image: "i",
				VolumeMounts: []corev1.VolumeMount{{Name: "x", MountPath: "/x"}}})(s)
		}, want: []string{`spec.initContainers[0].volumeMounts[0].name: Not found: "x"`}},
	})
}
