package objectcache

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// kind is a resource that Pods refer to. Errors about it use its text.
type kind string

const (
	configMap             kind = "configmap"
	secret                kind = "secret"
	persistentVolumeClaim kind = "persistentvolumeclaim"
	// persistentVolume has no namespace. Pods name only claims, which name a volume once they are bound.
	persistentVolume kind = "persistentvolume"
	// clusterTrustBundle and signerTrustBundles have no namespace. The latter is named by its signer and holds all its
	// current bundles.
	clusterTrustBundle kind = "clustertrustbundle"
	signerTrustBundles kind = "clustertrustbundles of the signer"
)

// key identifies one object.
type key struct {
	kind            kind
	namespace, name string
}

// references returns every ConfigMap, Secret, claim and bundle that the Pod names: in environments, volumes and image
// pull secrets; and every signer whose bundles it selects.
func references(pod *corev1.Pod) map[key]bool {
	keys := map[key]bool{}
	podview.VisitReferences(pod, collect(pod.Namespace, keys))
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for _, source := range projected.Sources {
			if bundle := source.ClusterTrustBundle; bundle != nil && bundle.SignerName != nil {
				keys[key{signerTrustBundles, "", *bundle.SignerName}] = true
			}
		}
	}
	return keys
}

// environment returns every ConfigMap and Secret that the container's environment names.
func environment(namespace string, container *corev1.Container) map[key]bool {
	keys := map[key]bool{}
	podview.VisitEnvironment(container.EnvFrom, container.Env, collect(namespace, keys))
	return keys
}

// collect returns a function that adds those references of a Pod in namespace that the cache follows.
func collect(namespace string, keys map[key]bool) func(podview.Reference) {
	return func(ref podview.Reference) {
		switch ref.Resource {
		case podview.ConfigMaps:
			keys[key{configMap, namespace, ref.Name}] = true
		case podview.Secrets:
			keys[key{secret, namespace, ref.Name}] = true
		case podview.PersistentVolumeClaims:
			keys[key{persistentVolumeClaim, namespace, ref.Name}] = true
		case podview.ClusterTrustBundles:
			if ref.Name != "" {
				keys[key{clusterTrustBundle, "", ref.Name}] = true
			}
		}
	}
}
