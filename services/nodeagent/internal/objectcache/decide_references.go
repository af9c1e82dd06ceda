package objectcache

import (
	corev1 "k8s.io/api/core/v1"
)

// kind is a resource that Pods refer to. Its text is the one that errors about it use.
type kind string

const (
	configMap kind = "configmap"
	secret    kind = "secret"
)

// key is one object.
type key struct {
	kind            kind
	namespace, name string
}

// references returns every ConfigMap and Secret that the Pod names: in environments, volumes and image pull secrets.
func references(pod *corev1.Pod) map[key]bool {
	refs := referenceSet{namespace: pod.Namespace, keys: map[key]bool{}}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			refs.environment(list[i].EnvFrom, list[i].Env)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		refs.environment(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env)
	}
	for i := range pod.Spec.Volumes {
		refs.volume(&pod.Spec.Volumes[i].VolumeSource)
	}
	for _, pull := range pod.Spec.ImagePullSecrets {
		refs.add(secret, pull.Name)
	}
	return refs.keys
}

type referenceSet struct {
	namespace string
	keys      map[key]bool
}

func (r referenceSet) add(kind kind, name string) {
	if name != "" {
		r.keys[key{kind, r.namespace, name}] = true
	}
}

func (r referenceSet) environment(sources []corev1.EnvFromSource, variables []corev1.EnvVar) {
	for _, from := range sources {
		if from.ConfigMapRef != nil {
			r.add(configMap, from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			r.add(secret, from.SecretRef.Name)
		}
	}
	for _, variable := range variables {
		if variable.ValueFrom == nil {
			continue
		}
		if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.add(configMap, ref.Name)
		}
		if ref := variable.ValueFrom.SecretKeyRef; ref != nil {
			r.add(secret, ref.Name)
		}
	}
}

func (r referenceSet) volume(source *corev1.VolumeSource) {
	if source.ConfigMap != nil {
		r.add(configMap, source.ConfigMap.Name)
	}
	if source.Secret != nil {
		r.add(secret, source.Secret.SecretName)
	}
	if source.Projected == nil {
		return
	}
	for _, projection := range source.Projected.Sources {
		if projection.ConfigMap != nil {
			r.add(configMap, projection.ConfigMap.Name)
		}
		if projection.Secret != nil {
			r.add(secret, projection.Secret.Name)
		}
	}
}
