package persistentvolume

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/localvolume"
	"keelson.dev/services/workload-controllers/internal/storeindex"
)

// The indexes: claims by the volume that they name and, while they wait for any volume, by class; volumes by the
// claim that they name and by the node that has their folder.
const (
	byVolume  = "keelson.dev/volume"
	byWaiting = "keelson.dev/waiting"
	byClaim   = "keelson.dev/claim"
	byNode    = "keelson.dev/node"
)

// stores are the caches behind the claims, volumes and classes. What they return is shared: read only.
type stores struct {
	claims, volumes, classes toolscache.Indexer
}

func storesOf(s *controller.Setup) stores {
	all := stores{claims: s.Store(&corev1.PersistentVolumeClaim{}), volumes: s.Store(&corev1.PersistentVolume{}),
		classes: s.Store(&storagev1.StorageClass{})}
	s.Check(all.index())
	return all
}

// index adds the indexes where they are missing.
func (s stores) index() error {
	return errors.Join(
		storeindex.Add(s.claims, byVolume, func(c *corev1.PersistentVolumeClaim) []string {
			return textOr(c.Spec.VolumeName != "", c.Spec.VolumeName)
		}),
		storeindex.Add(s.claims, byWaiting, func(c *corev1.PersistentVolumeClaim) []string {
			return textOr(isWaiting(c), classOf(c))
		}),
		storeindex.Add(s.volumes, byClaim, func(v *corev1.PersistentVolume) []string {
			if v.Spec.ClaimRef == nil {
				return nil
			}
			return []string{storeindex.Key(v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name)}
		}),
		storeindex.Add(s.volumes, byNode, func(v *corev1.PersistentVolume) []string {
			return textOr(v.Labels[localvolume.NodeLabel] != "", v.Labels[localvolume.NodeLabel])
		}),
	)
}

// textOr returns the text as an index value, or none if the object is not to be indexed.
func textOr(has bool, text string) []string {
	if !has {
		return nil
	}
	return []string{text}
}
