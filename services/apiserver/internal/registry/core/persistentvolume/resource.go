// Package persistentvolume is the resource PersistentVolume of the core group: storage that is there for claims.
//
//keelson:decision
package persistentvolume

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var (
	specHelp   = corev1.PersistentVolumeSpec{}.SwaggerDoc()
	statusHelp = corev1.PersistentVolumeStatus{}.SwaggerDoc()
)

// Resource is the PersistentVolume with its /status.
var Resource = resource.Resource[*corev1.PersistentVolume]{
	Name:          "persistentvolumes",
	Singular:      "persistentvolume",
	ShortNames:    []string{"pv"},
	ClusterScoped: true,
	New:           func() *corev1.PersistentVolume { return &corev1.PersistentVolume{} },
	NewList:       func() runtime.Object { return &corev1.PersistentVolumeList{} },
	Default:       Default,
	Spec: resource.PartOf(func(v *corev1.PersistentVolume) *corev1.PersistentVolumeSpec {
		return &v.Spec
	}),
	Status: resource.PartOf(func(v *corev1.PersistentVolume) *corev1.PersistentVolumeStatus {
		return &v.Status
	}),
	// The field's volumes do not count their generation.
	NoGeneration: true,
	Strategy: resource.Strategy[*corev1.PersistentVolume]{
		PrepareForCreate: func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumePending },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*corev1.PersistentVolume]{ValidateUpdate: ValidateStatusUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*corev1.PersistentVolume](),
		resource.Column("Capacity", "string", specHelp["capacity"], capacityCell),
		resource.Column("Access Modes", "string", specHelp["accessModes"],
			func(v *corev1.PersistentVolume) any { return table.AccessModes(v.Spec.AccessModes) }),
		resource.Column("Reclaim Policy", "string", specHelp["persistentVolumeReclaimPolicy"],
			func(v *corev1.PersistentVolume) any { return string(v.Spec.PersistentVolumeReclaimPolicy) }),
		resource.Column("Status", "string", statusHelp["phase"], phaseCell),
		resource.Column("Claim", "string", specHelp["claimRef"], claimCell),
		resource.Column("StorageClass", "string", specHelp["storageClassName"],
			func(v *corev1.PersistentVolume) any {
				return table.StorageClass(v.Annotations, &v.Spec.StorageClassName)
			}),
		resource.Column("VolumeAttributesClass", "string", specHelp["volumeAttributesClassName"],
			func(v *corev1.PersistentVolume) any { return ptr.Deref(v.Spec.VolumeAttributesClassName, table.Unset) }),
		resource.Column("Reason", "string", statusHelp["reason"],
			func(v *corev1.PersistentVolume) any { return v.Status.Reason }),
		resource.AgeColumn[*corev1.PersistentVolume](),
		resource.Column("VolumeMode", "string", specHelp["volumeMode"],
			func(v *corev1.PersistentVolume) any { return string(ptr.Deref(v.Spec.VolumeMode, table.Unset)) }).Wide(),
	),
}

// Default fills in the fields that v leaves out.
func Default(v *corev1.PersistentVolume) {
	spec := &v.Spec
	defaults.Set(&v.Status.Phase, corev1.VolumePending)
	defaults.Set(&spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	defaults.SetPtr(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if disk := spec.HostPath; disk != nil {
		defaults.SetPtr(&disk.Type, corev1.HostPathUnset)
	}
	if disk := spec.ISCSI; disk != nil {
		defaults.Set(&disk.ISCSIInterface, "default")
	}
	if disk := spec.RBD; disk != nil {
		defaults.Set(&disk.RBDPool, "rbd")
		defaults.Set(&disk.RadosUser, "admin")
		defaults.Set(&disk.Keyring, "/etc/ceph/keyring")
	}
	if disk := spec.ScaleIO; disk != nil {
		defaults.Set(&disk.StorageMode, "ThinProvisioned")
		defaults.Set(&disk.FSType, "xfs")
	}
	if disk := spec.AzureDisk; disk != nil {
		defaults.SetPtr(&disk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		defaults.SetPtr(&disk.Kind, corev1.AzureSharedBlobDisk)
		defaults.SetPtr(&disk.FSType, "ext4")
		defaults.SetPtr(&disk.ReadOnly, false)
	}
}

func capacityCell(v *corev1.PersistentVolume) any {
	storage := v.Spec.Capacity[corev1.ResourceStorage]
	return storage.String()
}

func phaseCell(v *corev1.PersistentVolume) any {
	if v.DeletionTimestamp != nil {
		return "Terminating"
	}
	return string(v.Status.Phase)
}

func claimCell(v *corev1.PersistentVolume) any {
	if v.Spec.ClaimRef == nil {
		return ""
	}
	return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
}
