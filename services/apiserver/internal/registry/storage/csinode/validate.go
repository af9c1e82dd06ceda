package csinode

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// maxNodeIDBytes is the longest name that a driver may have for a node.
const maxNodeIDBytes = 256

var driversPath = field.NewPath("spec", "drivers")

// Validate returns what is wrong with the drivers of a node.
func Validate(n *storagev1.CSINode) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range n.Spec.Drivers {
		driver, at := &n.Spec.Drivers[i], driversPath.Index(i)
		if names.Has(driver.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), driver.Name))
		}
		names.Insert(driver.Name)
		errs = append(errs, validateDriver(driver, at)...)
	}
	return errs
}

func validateDriver(driver *storagev1.CSINodeDriver, path *field.Path) field.ErrorList {
	errs := fieldcheck.Required(driver.Name, path.Child("name"), fieldcheck.DriverName)
	errs = append(errs, fieldcheck.Required(driver.NodeID, path.Child("nodeID"), fieldcheck.NotEmpty)...)
	errs = append(errs, fieldcheck.AtMostBytes(driver.NodeID, path.Child("nodeID"), maxNodeIDBytes)...)
	if driver.Allocatable != nil {
		errs = append(errs, fieldcheck.NonNegativePtr(driver.Allocatable.Count, path.Child("allocatable", "count"))...)
	}
	for i, key := range driver.TopologyKeys {
		at := path.Child("topologyKeys").Index(i)
		if slices.Contains(driver.TopologyKeys[:i], key) {
			errs = append(errs, field.Duplicate(at, key))
		}
		errs = append(errs, fieldcheck.Required(key, at, validation.IsQualifiedName)...)
	}
	return errs
}

// ValidateUpdate returns what is wrong with n as the successor of old: drivers come and go, and how many volumes they
// allow may change; nothing else of a driver does.
func ValidateUpdate(n, old *storagev1.CSINode) field.ErrorList {
	errs := Validate(n)
	for i := range n.Spec.Drivers {
		driver := n.Spec.Drivers[i]
		at := slices.IndexFunc(old.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver.Name })
		if at < 0 {
			continue
		}
		before := old.Spec.Drivers[at]
		before.Allocatable = driver.Allocatable
		if !equality.Semantic.DeepEqual(driver, before) {
			errs = append(errs, field.Invalid(driversPath.Index(i), driver.Name, "field is immutable"))
		}
	}
	return errs
}
