package feed

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/kit/volumename"
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

// trimVolume keeps what claims ask of volumes; where the data is it does not, but for what tells volumes
// of a driver apart.
func trimVolume(object any) (any, error) {
	v, ok := object.(*corev1.PersistentVolume)
	if !ok {
		return object, nil
	}
	trimMeta(&v.ObjectMeta)
	spec := v.Spec
	driver, handle := volumename.CSI(v)
	v.Spec = corev1.PersistentVolumeSpec{Capacity: spec.Capacity, AccessModes: spec.AccessModes,
		ClaimRef:         spec.ClaimRef,
		StorageClassName: spec.StorageClassName, VolumeMode: spec.VolumeMode, NodeAffinity: spec.NodeAffinity}
	if driver != "" {
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
	}
	v.Status = corev1.PersistentVolumeStatus{Phase: v.Status.Phase}
	return v, nil
}

// trimCSINode keeps how many volumes a node takes.
func trimCSINode(object any) (any, error) {
	n, ok := object.(*storagev1.CSINode)
	if !ok {
		return object, nil
	}
	trimMeta(&n.ObjectMeta)
	n.Labels = nil
	for i, d := range n.Spec.Drivers {
		n.Spec.Drivers[i] = storagev1.CSINodeDriver{Name: d.Name, Allocatable: d.Allocatable}
	}
	return n, nil
}

// trimAttachment keeps which volume is on which node.
func trimAttachment(object any) (any, error) {
	a, ok := object.(*storagev1.VolumeAttachment)
	if !ok {
		return object, nil
	}
	trimMeta(&a.ObjectMeta)
	a.Labels, a.Status = nil, storagev1.VolumeAttachmentStatus{}
	a.Spec.Source.InlineVolumeSpec = nil
	return a, nil
}

// trimDriver keeps what a driver asks of the scheduler.
func trimDriver(object any) (any, error) {
	d, ok := object.(*storagev1.CSIDriver)
	if !ok {
		return object, nil
	}
	trimMeta(&d.ObjectMeta)
	d.Labels = nil
	d.Spec = storagev1.CSIDriverSpec{StorageCapacity: d.Spec.StorageCapacity,
		PreventPodSchedulingIfMissing: d.Spec.PreventPodSchedulingIfMissing}
	return d, nil
}

// trimStorage keeps all but who made the object.
func trimStorage(object any) (any, error) {
	s, ok := object.(*storagev1.CSIStorageCapacity)
	if !ok {
		return object, nil
	}
	trimMeta(&s.ObjectMeta)
	s.Labels = nil
	return s, nil
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
