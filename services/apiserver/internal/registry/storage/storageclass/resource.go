// Package storageclass is the resource StorageClass of group storage.k8s.io: how volumes are made for claims.
//
//keelson:decision
package storageclass

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaultclass"
	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var help = storagev1.StorageClass{}.SwaggerDoc()

// Resource is the StorageClass.
var Resource = resource.Resource[*storagev1.StorageClass]{
	Group:         storagev1.GroupName,
	Name:          "storageclasses",
	Singular:      "storageclass",
	ShortNames:    []string{"sc"},
	ClusterScoped: true,
	New:           func() *storagev1.StorageClass { return &storagev1.StorageClass{} },
	NewList:       func() runtime.Object { return &storagev1.StorageClassList{} },
	Default:       Default,
	Strategy: resource.Strategy[*storagev1.StorageClass]{
		Validate: Validate, ValidateUpdate: ValidateUpdate, CreateOnUpdate: true,
	},
	Columns: resource.NewColumns(
		resource.NameColumnOf(nameCell),
		resource.Column("Provisioner", "string", help["provisioner"],
			func(c *storagev1.StorageClass) any { return c.Provisioner }),
		resource.Column("ReclaimPolicy", "string", help["reclaimPolicy"],
			func(c *storagev1.StorageClass) any {
				return string(ptr.Deref(c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete))
			}),
		resource.Column("VolumeBindingMode", "string", help["volumeBindingMode"],
			func(c *storagev1.StorageClass) any { return string(ptr.Deref(c.VolumeBindingMode, table.Unset)) }),
		resource.Column("AllowVolumeExpansion", "string", help["allowVolumeExpansion"],
			func(c *storagev1.StorageClass) any { return ptr.Deref(c.AllowVolumeExpansion, false) }),
		resource.AgeColumn[*storagev1.StorageClass](),
	),
}

// Default fills in what happens to the volumes of deleted claims, and when volumes are made.
func Default(c *storagev1.StorageClass) {
	defaults.SetPtr(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	defaults.SetPtr(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

func nameCell(c *storagev1.StorageClass) any {
	if defaultclass.Storage.Mark(c) {
		return c.Name + " (default)"
	}
	return c.Name
}
