// Package volumeattributesclass is the resource VolumeAttributesClass of group storage.k8s.io: attributes of volumes
// that may change after the volume was made.
//
//keelson:decision
package volumeattributesclass

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the VolumeAttributesClass.
var Resource = resource.Resource[*storagev1.VolumeAttributesClass]{
	Group:         storagev1.GroupName,
	Name:          "volumeattributesclasses",
	Singular:      "volumeattributesclass",
	ShortNames:    []string{"vac"},
	ClusterScoped: true,
	New:           func() *storagev1.VolumeAttributesClass { return &storagev1.VolumeAttributesClass{} },
	NewList:       func() runtime.Object { return &storagev1.VolumeAttributesClassList{} },
	Strategy: resource.Strategy[*storagev1.VolumeAttributesClass]{
		Validate: Validate, ValidateUpdate: ValidateUpdate, CreateOnUpdate: true,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*storagev1.VolumeAttributesClass](),
		resource.Column("DriverName", "string", storagev1.VolumeAttributesClass{}.SwaggerDoc()["driverName"],
			func(c *storagev1.VolumeAttributesClass) any { return c.DriverName }),
		resource.AgeColumn[*storagev1.VolumeAttributesClass](),
	),
}

var (
	driverPath     = field.NewPath("driverName")
	parametersPath = field.NewPath("parameters")
)

// Validate returns what is wrong with a class.
func Validate(c *storagev1.VolumeAttributesClass) field.ErrorList {
	errs := fieldcheck.Required(c.DriverName, driverPath, fieldcheck.DriverName)
	if len(c.Parameters) == 0 {
		errs = append(errs, field.Required(parametersPath, "must contain at least one key/value pair"))
	}
	return append(errs, fieldcheck.Parameters(c.Parameters, parametersPath)...)
}

// ValidateUpdate returns what is wrong with c as the successor of old: a class never changes.
func ValidateUpdate(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
	errs := append(Validate(c), fieldcheck.Immutable(c.DriverName, old.DriverName, driverPath)...)
	return append(errs, fieldcheck.Immutable(c.Parameters, old.Parameters, parametersPath)...)
}
