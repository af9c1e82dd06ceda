package feed

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/services/scheduler/internal/volumes"
)

// trimClaim keeps what demands are made of.
func trimClaim(object any) (any, error) {
	c, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return object, nil // a tombstone
	}
	owners := c.OwnerReferences
	c.Annotations = only(c.Annotations, volumes.BindCompleted, volumes.SelectedNode, corev1.BetaStorageClassAnnotation)
	kept := c.Annotations
	trimMeta(&c.ObjectMeta)
	c.Annotations, c.OwnerReferences, c.Labels = kept, owners, nil
	c.Spec.DataSource, c.Spec.DataSourceRef = nil, nil
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase}
	return c, nil
}

// trimVolume keeps what claims ask of volumes; where the data is it does not.
func trimVolume(object any) (any, error) {
	v, ok := object.(*corev1.PersistentVolume)
	if !ok {
		return object, nil
	}
	trimMeta(&v.ObjectMeta)
	spec := v.Spec
	v.Spec = corev1.PersistentVolumeSpec{Capacity: spec.Capacity, AccessModes: spec.AccessModes,
		ClaimRef:         spec.ClaimRef,
		StorageClassName: spec.StorageClassName, VolumeMode: spec.VolumeMode, NodeAffinity: spec.NodeAffinity}
	v.Status = corev1.PersistentVolumeStatus{Phase: v.Status.Phase}
	return v, nil
}

func trimClass(object any) (any, error) {
	c, ok := object.(*storagev1.StorageClass)
	if !ok {
		return object, nil
	}
	trimMeta(&c.ObjectMeta)
	c.Parameters, c.MountOptions = nil, nil
	return c, nil
}

func only(in map[string]string, keys ...string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		if value, ok := in[key]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}
