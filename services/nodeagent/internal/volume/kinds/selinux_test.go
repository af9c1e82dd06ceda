package kinds_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// On a host with SELinux, volumes that the node has created get the container's label, whole or in part; paths of
// the host and of users' volumes keep their own, and so does everything on a host without SELinux.
func TestLabels(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.bound()
	r.add("disk", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	r.add("memory", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
	r.add("map", configMapSource("cm", nil))
	r.add("secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}})
	r.add("api", kubeAPIAccess())
	r.add("pod", corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
		{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}})
	r.add("data", claimed(false))
	r.add("host", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: t.TempDir()}})
	r.pod.Spec.Containers[0].VolumeMounts[0].SubPath = "part"
	volumes := r.setUp(t)
	for _, row := range []struct {
		has  bool
		want string
	}{{true, "/disk /memory /map /secret /api /pod /data"}, {false, ""}} {
		mounts, err := r.Mounts(volume.MountRequest{Pod: r.pod, Container: &r.pod.Spec.Containers[0], Volumes: volumes,
			SELinux: row.has})
		if err != nil {
			t.Fatal(err)
		}
		var labelled []string
		for _, m := range mounts {
			if m.SelinuxRelabel {
				labelled = append(labelled, m.ContainerPath)
			}
		}
		if got := strings.Join(labelled, " "); got != row.want || len(mounts) != 8 {
			t.Errorf("with SELinux %v, of %d mounts labelled: %q, want %q", row.has, len(mounts), got, row.want)
		}
	}
	r.bound(func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
			Local: &corev1.LocalVolumeSource{Path: t.TempDir()}}
	})
	r.next(t, "u-2")
	if theirs := r.setUp(t)["data"]; theirs.Own || theirs.Path == "" {
		t.Errorf("the folder that a user has made a volume: %+v", theirs)
	}
}
