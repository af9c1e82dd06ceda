package serviceaccount

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func pod(edits ...func(*corev1.PodSpec)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}},
		Containers:     []corev1.Container{{Name: "a"}, {Name: "b"}},
	}}
	for _, edit := range edits {
		edit(&p.Spec)
	}
	return p
}

func TestSetName(t *testing.T) {
	for _, row := range []struct{ name, old, want string }{{"", "", "default"}, {"a", "", "a"}, {"", "b", "b"},
		{"a", "b", "a"}} {
		p := pod(func(s *corev1.PodSpec) { s.ServiceAccountName, s.DeprecatedServiceAccount = row.name, row.old })
		setName(p)
		if p.Spec.ServiceAccountName != row.want || p.Spec.DeprecatedServiceAccount != row.want {
			t.Errorf("%q and %q gave %q and %q", row.name, row.old, p.Spec.ServiceAccountName,
				p.Spec.DeprecatedServiceAccount)
		}
	}
}

func TestApplyMountsToken(t *testing.T) {
	p := pod()
	apply(p, &corev1.ServiceAccount{}, "x7k2p")
	if len(p.Spec.Volumes) != 1 || p.Spec.Volumes[0].Name != "kube-api-access-x7k2p" {
		t.Fatalf("volumes %+v", p.Spec.Volumes)
	}
	sources := p.Spec.Volumes[0].Projected.Sources
	if len(sources) != 3 || sources[0].ServiceAccountToken.Path != "token" ||
		*sources[0].ServiceAccountToken.ExpirationSeconds != 3607 ||
		sources[1].ConfigMap.Name != "kube-root-ca.crt" || sources[1].ConfigMap.Items[0].Path != "ca.crt" ||
		sources[2].DownwardAPI.Items[0].FieldRef.FieldPath != "metadata.namespace" ||
		*p.Spec.Volumes[0].Projected.DefaultMode != 0o644 {
		t.Errorf("projected %+v", sources)
	}
	for _, c := range append(p.Spec.Containers, p.Spec.InitContainers...) {
		if len(c.VolumeMounts) != 1 || !c.VolumeMounts[0].ReadOnly || c.VolumeMounts[0].MountPath != MountPath {
			t.Errorf("container %s has %+v", c.Name, c.VolumeMounts)
		}
	}
}

func TestWhoGetsToken(t *testing.T) {
	for _, row := range []struct {
		name         string
		pod, account *bool
		want         bool
	}{
		{"nobody says anything", nil, nil, true},
		{"the account refuses", nil, ptr.To(false), false},
		{"the Pod refuses", ptr.To(false), nil, false},
		{"the Pod wins", ptr.To(true), ptr.To(false), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := pod(func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = row.pod })
			apply(p, &corev1.ServiceAccount{AutomountServiceAccountToken: row.account}, "x")
			if got := len(p.Spec.Volumes) == 1; got != row.want {
				t.Errorf("mounted: %v", got)
			}
		})
	}
	t.Run("a container with something else there", func(t *testing.T) {
		mine := []corev1.VolumeMount{{Name: "mine", MountPath: MountPath}}
		p := pod(func(s *corev1.PodSpec) { s.InitContainers, s.Containers[0].VolumeMounts = nil, mine })
		apply(p, &corev1.ServiceAccount{}, "x")
		if len(p.Spec.Containers[0].VolumeMounts) != 1 || len(p.Spec.Containers[1].VolumeMounts) != 1 ||
			len(p.Spec.Volumes) != 1 {
			t.Errorf("got %+v", p.Spec)
		}
		p = pod(func(s *corev1.PodSpec) {
			s.InitContainers, s.Containers = nil, []corev1.Container{{VolumeMounts: mine}}
		})
		if apply(p, &corev1.ServiceAccount{}, "x"); len(p.Spec.Volumes) != 0 {
			t.Error("a volume that nobody mounts")
		}
	})
}

func TestImagePullSecrets(t *testing.T) {
	account := &corev1.ServiceAccount{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}}
	p := pod()
	if apply(p, account, "x"); len(p.Spec.ImagePullSecrets) != 1 || p.Spec.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("got %v", p.Spec.ImagePullSecrets)
	}
	p.Spec.ImagePullSecrets[0].Name = "changed"
	if account.ImagePullSecrets[0].Name != "registry" {
		t.Error("the Pod shares the account's list")
	}
	own := pod(func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "own"}} })
	if apply(own, account, "x"); len(own.Spec.ImagePullSecrets) != 1 || own.Spec.ImagePullSecrets[0].Name != "own" {
		t.Errorf("got %v", own.Spec.ImagePullSecrets)
	}
}
