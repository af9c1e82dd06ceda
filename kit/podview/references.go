package podview

import (
	corev1 "k8s.io/api/core/v1"
)

// The resources that Pods refer to by name.
const (
	ConfigMaps             = "configmaps"
	Secrets                = "secrets"
	PersistentVolumeClaims = "persistentvolumeclaims"
	ServiceAccounts        = "serviceaccounts"
)

// Reference names an object that a Pod needs, in the Pod's own namespace.
type Reference struct {
	Resource, Name string
}

// VisitReferences shows every object that the Pod names: its account, its pull secrets, and what its volumes and the
// environments of all its containers take content from. One that is named twice is shown twice.
func VisitReferences(pod *corev1.Pod, visit func(Reference)) {
	v := visitor(visit)
	v.show(ServiceAccounts, pod.Spec.ServiceAccountName)
	for _, pull := range pod.Spec.ImagePullSecrets {
		v.show(Secrets, pull.Name)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			VisitEnvironment(containers[i].EnvFrom, containers[i].Env, visit)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		VisitEnvironment(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env, visit)
	}
	for i := range pod.Spec.Volumes {
		v.volume(pod.Name, &pod.Spec.Volumes[i])
	}
}

// VisitEnvironment shows the ConfigMaps and Secrets that one container's environment takes values from.
func VisitEnvironment(sources []corev1.EnvFromSource, variables []corev1.EnvVar, visit func(Reference)) {
	v := visitor(visit)
	for _, from := range sources {
		if from.ConfigMapRef != nil {
			v.show(ConfigMaps, from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			v.show(Secrets, from.SecretRef.Name)
		}
	}
	for _, variable := range variables {
		if variable.ValueFrom == nil {
			continue
		}
		if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
			v.show(ConfigMaps, ref.Name)
		}
		if ref := variable.ValueFrom.SecretKeyRef; ref != nil {
			v.show(Secrets, ref.Name)
		}
	}
}

type visitor func(Reference)

func (v visitor) show(resource, name string) {
	if name != "" {
		v(Reference{resource, name})
	}
}

func (v visitor) volume(pod string, volume *corev1.Volume) {
	switch {
	case volume.ConfigMap != nil:
		v.show(ConfigMaps, volume.ConfigMap.Name)
	case volume.Secret != nil:
		v.show(Secrets, volume.Secret.SecretName)
	case volume.Projected != nil:
		v.projected(volume.Projected)
	case volume.PersistentVolumeClaim != nil:
		v.show(PersistentVolumeClaims, volume.PersistentVolumeClaim.ClaimName)
	case volume.Ephemeral != nil:
		v.show(PersistentVolumeClaims, pod+"-"+volume.Name)
	case volume.AzureFile != nil:
		v.show(Secrets, volume.AzureFile.SecretName)
	default:
		if secret := driverSecret(&volume.VolumeSource); secret != nil {
			v.show(Secrets, secret.Name)
		}
	}
}

func (v visitor) projected(source *corev1.ProjectedVolumeSource) {
	for _, projection := range source.Sources {
		if projection.ConfigMap != nil {
			v.show(ConfigMaps, projection.ConfigMap.Name)
		}
		if projection.Secret != nil {
			v.show(Secrets, projection.Secret.Name)
		}
	}
}

// driverSecret is what the driver of a volume identifies itself with, or nil.
func driverSecret(source *corev1.VolumeSource) *corev1.LocalObjectReference {
	switch {
	case source.CSI != nil:
		return source.CSI.NodePublishSecretRef
	case source.CephFS != nil:
		return source.CephFS.SecretRef
	case source.Cinder != nil:
		return source.Cinder.SecretRef
	case source.FlexVolume != nil:
		return source.FlexVolume.SecretRef
	case source.ISCSI != nil:
		return source.ISCSI.SecretRef
	case source.RBD != nil:
		return source.RBD.SecretRef
	case source.ScaleIO != nil:
		return source.ScaleIO.SecretRef
	case source.StorageOS != nil:
		return source.StorageOS.SecretRef
	}
	return nil
}
