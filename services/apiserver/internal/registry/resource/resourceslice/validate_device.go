package resourceslice

import (
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/resource/device"
)

func validateDevice(d, old *resourcev1.Device, path *field.Path) field.ErrorList {
	errs := fieldcheck.Required(d.Name, path.Child("name"), validation.IsDNS1123Label)
	limit := resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice
	if count := len(d.Attributes) + len(d.Capacity); count > limit {
		return append(errs, field.TooMany(path, count, limit))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		attribute, at := d.Attributes[name], path.Child("attributes").Key(string(name))
		errs = append(errs, fieldcheck.Messages(name, at, device.QualifiedName(string(name)))...)
		errs = append(errs, validateAttribute(&attribute, at)...)
	}
	if old == nil || !equality.Semantic.DeepEqual(d.Capacity, old.Capacity) {
		errs = append(errs, validateCapacities(d, path.Child("capacity"))...)
	}
	if old == nil || !equality.Semantic.DeepEqual(d.Taints, old.Taints) {
		errs = append(errs, validateTaints(d.Taints, path.Child("taints"))...)
	}
	for i := range d.ConsumesCounters {
		errs = append(errs, boundCounters(d.ConsumesCounters[i].Counters,
			resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption, path.Child("consumesCounters").Index(i))...)
	}
	return append(errs, device.ValidateBindingConditions(d.BindingConditions, d.BindingFailureConditions, path)...)
}

func validateAttribute(a *resourcev1.DeviceAttribute, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a.StringValue != nil {
		errs = append(errs, fieldcheck.AtMostBytes(*a.StringValue, path.Child("string"),
			resourcev1.DeviceAttributeMaxValueLength)...)
	}
	if version := a.VersionValue; version != nil {
		at := path.Child("version")
		errs = append(errs, fieldcheck.AtMostBytes(*version, at, resourcev1.DeviceAttributeMaxValueLength)...)
		if _, err := semver.Parse(*version); err != nil && len(errs) == 0 {
			errs = append(errs, field.Invalid(at, *version, "must be a string compatible with semver.org spec 2.0.0"))
		}
	}
	return errs
}

func validateCapacities(d *resourcev1.Device, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		capacity, at := d.Capacity[name], path.Key(string(name))
		errs = append(errs, fieldcheck.Messages(name, at, device.QualifiedName(string(name)))...)
		switch policy, at := capacity.RequestPolicy, at.Child("requestPolicy"); {
		case policy == nil:
		case !ptr.Deref(d.AllowMultipleAllocations, false):
			errs = append(errs, field.Forbidden(at, "allowMultipleAllocations must be true"))
		default:
			errs = append(errs, validatePolicy(policy, &capacity.Value, at)...)
		}
	}
	return errs
}

func validateTaints(taints []resourcev1.DeviceTaint, path *field.Path) field.ErrorList {
	if len(taints) > resourcev1.DeviceTaintsMaxLength {
		return field.ErrorList{field.TooMany(path, len(taints), resourcev1.DeviceTaintsMaxLength)}
	}
	var errs field.ErrorList
	for i := range taints {
		taint, at := &taints[i], path.Index(i)
		errs = append(errs, fieldcheck.Required(taint.Key, at.Child("key"), validation.IsQualifiedName)...)
		errs = append(errs, fieldcheck.Messages(taint.Value, at.Child("value"),
			validation.IsValidLabelValue(taint.Value))...)
	}
	return errs
}
