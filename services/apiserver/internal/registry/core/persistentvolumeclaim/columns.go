package persistentvolumeclaim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var (
	specHelp   = corev1.PersistentVolumeClaimSpec{}.SwaggerDoc()
	statusHelp = corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()
)

// columns are what kubectl get persistentvolumeclaims prints.
var columns = resource.NewColumns(
	resource.NameColumn[*corev1.PersistentVolumeClaim](),
	resource.Column("Status", "string", statusHelp["phase"], phaseCell),
	resource.Column("Volume", "string", specHelp["volumeName"],
		func(c *corev1.PersistentVolumeClaim) any { return c.Spec.VolumeName }),
	resource.Column("Capacity", "string", statusHelp["capacity"], capacityCell),
	resource.Column("Access Modes", "string", statusHelp["accessModes"], modesCell),
	resource.Column("StorageClass", "string", specHelp["storageClassName"],
		func(c *corev1.PersistentVolumeClaim) any {
			return table.StorageClass(c.Annotations, c.Spec.StorageClassName)
		}),
	resource.Column("VolumeAttributesClass", "string", specHelp["volumeAttributesClassName"],
		func(c *corev1.PersistentVolumeClaim) any {
			return ptr.Deref(c.Spec.VolumeAttributesClassName, table.Unset)
		}),
	resource.AgeColumn[*corev1.PersistentVolumeClaim](),
	resource.Column("VolumeMode", "string", specHelp["volumeMode"],
		func(c *corev1.PersistentVolumeClaim) any { return string(ptr.Deref(c.Spec.VolumeMode, table.Unset)) }).Wide(),
)

func phaseCell(c *corev1.PersistentVolumeClaim) any {
	if c.DeletionTimestamp != nil {
		return "Terminating"
	}
	return string(c.Status.Phase)
}

// capacityCell shows what the volume has; a claim without a volume has nothing.
func capacityCell(c *corev1.PersistentVolumeClaim) any {
	if c.Spec.VolumeName == "" {
		return ""
	}
	storage := c.Status.Capacity[corev1.ResourceStorage]
	return storage.String()
}

func modesCell(c *corev1.PersistentVolumeClaim) any {
	if c.Spec.VolumeName == "" {
		return ""
	}
	return table.AccessModes(c.Status.AccessModes)
}
