package serviceaccount

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// DefaultName is the account of Pods that name none.
	DefaultName = "default"
	// MountPath is where containers find their token.
	MountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

	volumePrefix = "kube-api-access-"
	rootCA       = "kube-root-ca.crt"
	// tokenSeconds is an hour and a bit: the odd number distinguishes these tokens from those that a client requested.
	tokenSeconds = int64(60*60 + 7)
)

// setName gives the Pod an account if it names none, in both of its fields.
func setName(pod *corev1.Pod) {
	spec := &pod.Spec
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = DefaultName
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
}

// apply gives the Pod what its account brings: a token, unless one of the two refuses it, and the secrets to pull
// images with, unless the Pod has its own. suffix makes the name of the token's volume.
func apply(pod *corev1.Pod, account *corev1.ServiceAccount, suffix string) {
	if wantsToken(pod, account) {
		mountToken(&pod.Spec, volumePrefix+suffix)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	}
}

// wantsToken lets the Pod decide, then the account; else the answer is yes.
func wantsToken(pod *corev1.Pod, account *corev1.ServiceAccount) bool {
	return ptr.Deref(pod.Spec.AutomountServiceAccountToken, ptr.Deref(account.AutomountServiceAccountToken, true))
}

// mountToken mounts the token into each container that has nothing mounted there.
func mountToken(spec *corev1.PodSpec, volume string) {
	mounted := false
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if slices.ContainsFunc(c.VolumeMounts,
				func(m corev1.VolumeMount) bool { return m.MountPath == MountPath }) {
				continue
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, ReadOnly: true,
				MountPath: MountPath})
			mounted = true
		}
	}
	if mounted {
		spec.Volumes = append(spec.Volumes, tokenVolume(volume))
	}
}

// tokenVolume holds the token, the certificate authority of the apiserver and the Pod's namespace.
func tokenVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: corev1.ServiceAccountTokenKey,
				ExpirationSeconds: ptr.To(tokenSeconds)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: rootCA},
				Items: []corev1.KeyToPath{{Key: corev1.ServiceAccountRootCAKey,
					Path: corev1.ServiceAccountRootCAKey}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path:     corev1.ServiceAccountNamespaceKey,
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}
