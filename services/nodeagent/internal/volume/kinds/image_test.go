package kinds_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/podenv"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// An image is mounted by the runtime, whole or in part, and always read-only.
func TestImageMounts(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.add("data", corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data:1"}})
	volumes := r.setUp(t)
	enabled := ptr.To(corev1.RecursiveReadOnlyEnabled)
	for _, row := range []struct {
		name   string
		mount  corev1.VolumeMount
		images map[string]string
		part   string
		whole  bool
		err    string
	}{
		{name: "whole", mount: corev1.VolumeMount{Name: "data", MountPath: "/d"}},
		{name: "in part", mount: corev1.VolumeMount{Name: "data", MountPath: "/d", SubPath: "a/b"}, part: "a/b"},
		{name: "an expression", mount: corev1.VolumeMount{Name: "data", MountPath: "/d", SubPathExpr: "of/$(POD)"},
			part: "of/web-0"},
		{name: "read-only all the way down", mount: corev1.VolumeMount{Name: "data", MountPath: "/d", ReadOnly: true,
			RecursiveReadOnly: enabled}, whole: true},
		{name: "out of it", mount: corev1.VolumeMount{Name: "data", MountPath: "/d", SubPathExpr: "$(UP)/b"},
			err: `subPath "../b" of volumeMount "data" of container "app" must be a relative path without '..'`},
		{name: "from the root", mount: corev1.VolumeMount{Name: "data", MountPath: "/d", SubPathExpr: "$(ROOT)"},
			err: `subPath "/b" of volumeMount "data" of container "app" must be a relative path without '..'`},
		{name: "nobody has looked for it", mount: corev1.VolumeMount{Name: "data", MountPath: "/d"},
			images: map[string]string{"other": "sha256:1"},
			err:    `the image of volume "data" to mount into container "app" was not looked for`},
	} {
		images := row.images
		if images == nil {
			images = map[string]string{"data": "sha256:1"}
		}
		mounts, err := r.Mounts(volume.MountRequest{Pod: r.pod, Volumes: volumes, Images: images,
			Container:         &corev1.Container{Name: "app", VolumeMounts: []corev1.VolumeMount{row.mount}},
			RecursiveReadOnly: true, SELinux: true,
			Env: podenv.Result{Env: []podenv.Variable{{Name: "POD", Value: "web-0"}, {Name: "UP", Value: ".."},
				{Name: "ROOT", Value: "/b"}}}})
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: %v, want %s", row.name, err, row.err)
			}
			continue
		}
		if err != nil || len(mounts) != 1 {
			t.Errorf("%s: %v, %v", row.name, mounts, err)
			continue
		}
		if m := mounts[0]; m.HostPath != "" || m.ContainerPath != "/d" || !m.Readonly || m.SelinuxRelabel ||
			m.GetImage().GetImage() != "sha256:1" || m.ImageSubPath != row.part || m.RecursiveReadOnly != row.whole {
			t.Errorf("%s: %v", row.name, m)
		}
	}
}
