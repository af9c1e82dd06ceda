// Package csidriver is the resource CSIDriver of group storage.k8s.io: what a storage driver can do and wants to know.
//
//keelson:decision
package csidriver

import (
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var help = storagev1.CSIDriverSpec{}.SwaggerDoc()

// Resource is the CSIDriver.
var Resource = resource.Resource[*storagev1.CSIDriver]{
	Group:         storagev1.GroupName,
	Name:          "csidrivers",
	Singular:      "csidriver",
	ClusterScoped: true,
	New:           func() *storagev1.CSIDriver { return &storagev1.CSIDriver{} },
	NewList:       func() runtime.Object { return &storagev1.CSIDriverList{} },
	Default:       Default,
	Spec:          resource.PartOf(func(d *storagev1.CSIDriver) *storagev1.CSIDriverSpec { return &d.Spec }),
	Strategy: resource.Strategy[*storagev1.CSIDriver]{
		Name: validName, Validate: Validate, ValidateUpdate: ValidateUpdate,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*storagev1.CSIDriver](),
		flagColumn("AttachRequired", "attachRequired",
			func(s *storagev1.CSIDriverSpec) bool { return ptr.Deref(s.AttachRequired, true) }),
		flagColumn("PodInfoOnMount", "podInfoOnMount",
			func(s *storagev1.CSIDriverSpec) bool { return ptr.Deref(s.PodInfoOnMount, false) }),
		flagColumn("StorageCapacity", "storageCapacity",
			func(s *storagev1.CSIDriverSpec) bool { return ptr.Deref(s.StorageCapacity, false) }),
		resource.Column("TokenRequests", "string", help["tokenRequests"], tokensCell),
		flagColumn("RequiresRepublish", "requiresRepublish",
			func(s *storagev1.CSIDriverSpec) bool { return ptr.Deref(s.RequiresRepublish, false) }),
		resource.Column("Modes", "string", help["volumeLifecycleModes"], modesCell),
		resource.AgeColumn[*storagev1.CSIDriver](),
	),
}

// Default fills in what a driver is taken for that does not say otherwise.
func Default(d *storagev1.CSIDriver) {
	spec := &d.Spec
	defaults.SetPtr(&spec.AttachRequired, true)
	defaults.SetPtr(&spec.PodInfoOnMount, false)
	defaults.SetPtr(&spec.StorageCapacity, false)
	defaults.SetPtr(&spec.RequiresRepublish, false)
	defaults.SetPtr(&spec.SELinuxMount, false)
	defaults.SetPtr(&spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(spec.VolumeLifecycleModes) == 0 {
		spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}

func flagColumn(name, field string, of func(*storagev1.CSIDriverSpec) bool) resource.TableColumn[*storagev1.CSIDriver] {
	return resource.Column(name, "boolean", help[field], func(d *storagev1.CSIDriver) any { return of(&d.Spec) })
}

func tokensCell(d *storagev1.CSIDriver) any {
	audiences := make([]string, 0, len(d.Spec.TokenRequests))
	for _, request := range d.Spec.TokenRequests {
		audiences = append(audiences, request.Audience)
	}
	if len(audiences) == 0 {
		return table.Unset
	}
	return strings.Join(audiences, ",")
}

func modesCell(d *storagev1.CSIDriver) any {
	modes := make([]string, 0, len(d.Spec.VolumeLifecycleModes))
	for _, mode := range d.Spec.VolumeLifecycleModes {
		modes = append(modes, string(mode))
	}
	if len(modes) == 0 {
		return table.Unset
	}
	return strings.Join(modes, ",")
}
