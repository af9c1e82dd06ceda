package resourceclaim

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"keelson.dev/kit/controller"
	"keelson.dev/services/workload-controllers/internal/storeindex"
)

// The indexes: Pods by the templates that they name, and claims by the UID of the Pod that they were created for.
// Pods that name no template are not indexed.
const (
	byTemplate = "resourceclaim/template"
	byPod      = "resourceclaim/pod"
)

// stores are the caches that the decisions read. The objects are shared: read only.
type stores struct {
	pods, claims, templates toolscache.Indexer
}

func storesOf(s *controller.Setup) stores {
	all := stores{pods: s.Store(&corev1.Pod{}), claims: s.Store(&resourcev1.ResourceClaim{}),
		templates: s.Store(&resourcev1.ResourceClaimTemplate{})}
	s.Check(all.index())
	return all
}

// index adds the indexes where they are missing.
func (s stores) index() error {
	return errors.Join(
		storeindex.Add(s.pods, byTemplate, func(pod *corev1.Pod) []string {
			var keys []string
			for i := range pod.Spec.ResourceClaims {
				if name := pod.Spec.ResourceClaims[i].ResourceClaimTemplateName; name != nil {
					keys = append(keys, storeindex.Key(pod.Namespace, *name))
				}
			}
			return keys
		}),
		storeindex.Add(s.claims, byPod, func(claim *resourcev1.ResourceClaim) []string {
			if owner := podOf(claim); owner != nil {
				return []string{string(owner.UID)}
			}
			return nil
		}),
	)
}

// podOf returns the Pod that the claim was created for, or nil.
func podOf(claim *resourcev1.ResourceClaim) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil || owner.Kind != podKind.Kind || owner.APIVersion != podKind.Version {
		return nil
	}
	return owner
}
