// Package csistoragecapacity is the resource CSIStorageCapacity of group storage.k8s.io: what a driver has left for new
// volumes of a class, in a part of the cluster.
//
//keelson:decision
package csistoragecapacity

import (
	storagev1 "k8s.io/api/storage/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var help = storagev1.CSIStorageCapacity{}.SwaggerDoc()

// Resource is the CSIStorageCapacity.
var Resource = resource.Resource[*storagev1.CSIStorageCapacity]{
	Group:    storagev1.GroupName,
	Name:     "csistoragecapacities",
	Singular: "csistoragecapacity",
	New:      func() *storagev1.CSIStorageCapacity { return &storagev1.CSIStorageCapacity{} },
	NewList:  func() runtime.Object { return &storagev1.CSIStorageCapacityList{} },
	Strategy: resource.Strategy[*storagev1.CSIStorageCapacity]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*storagev1.CSIStorageCapacity](),
		resource.Column("StorageClassName", "string", help["storageClassName"],
			func(c *storagev1.CSIStorageCapacity) any { return c.StorageClassName }),
		resource.Column("Capacity", "string", help["capacity"], capacityCell),
	),
}

func capacityCell(c *storagev1.CSIStorageCapacity) any {
	if c.Capacity == nil {
		return table.Unset
	}
	return c.Capacity.String()
}

var (
	classPath    = field.NewPath("storageClassName")
	topologyPath = field.NewPath("nodeTopology")
)

// Validate returns what is wrong with a capacity.
func Validate(c *storagev1.CSIStorageCapacity) field.ErrorList {
	errs := fieldcheck.Required(c.StorageClassName, classPath, fieldcheck.DNSSubdomain)
	errs = append(errs, fieldcheck.LabelSelector(c.NodeTopology, topologyPath)...)
	errs = append(errs, validateSize(c.Capacity, field.NewPath("capacity"))...)
	return append(errs, validateSize(c.MaximumVolumeSize, field.NewPath("maximumVolumeSize"))...)
}

func validateSize(size *quantity.Quantity, path *field.Path) field.ErrorList {
	if size != nil && size.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, size.String(), fieldcheck.NotNegative)}
	}
	return nil
}

// ValidateUpdate returns what is wrong with c as the successor of old: sizes change, what they are of does not.
func ValidateUpdate(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
	errs := append(Validate(c), fieldcheck.Immutable(c.StorageClassName, old.StorageClassName, classPath)...)
	return append(errs, fieldcheck.Immutable(c.NodeTopology, old.NodeTopology, topologyPath)...)
}
