package resourceclaim

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/resource/device"
)

var (
	specPath       = field.NewPath("spec")
	statusPath     = field.NewPath("status")
	allocationPath = statusPath.Child("allocation")
	devicesPath    = statusPath.Child("devices")
)

// Validate returns what is wrong with a new claim.
func Validate(c *claim) field.ErrorList { return device.ValidateClaim(&c.Spec, specPath) }

// ValidateUpdate returns what is wrong with c as the successor of old: what is asked for never changes.
func ValidateUpdate(c, old *claim) field.ErrorList {
	return fieldcheck.Immutable(c.Spec, old.Spec, specPath)
}

// ValidateStatusUpdate returns what is wrong with a status as the successor of old's.
func ValidateStatusUpdate(c, old *claim) field.ErrorList {
	// The generated check compares all with all.
	if errs := boundDevices(c.Status.Devices); len(errs) > 0 {
		return errs
	}
	found := device.Generated(resourcev1.Validate_ResourceClaimStatus, &c.Status, &old.Status, statusPath)
	if device.TooMany(found) {
		return found
	}
	errs := validateReservations(c, old)
	if c.Status.Allocation != nil && old.Status.Allocation == nil {
		errs = append(errs, validateAllocation(c.Status.Allocation, device.RequestsOf(&c.Spec.Devices))...)
	}
	has := allocated(&c.Status)
	for i := range c.Status.Devices {
		reported, at := &c.Status.Devices[i], devicesPath.Index(i)
		if !has.Has(reportedID(reported)) {
			errs = append(errs, field.Invalid(at, reported.Driver+"/"+reported.Pool+"/"+reported.Device,
				"must be an allocated device in the claim"))
		}
		errs = append(errs, validateReport(reported, at)...)
	}
	return device.Beside(found, errs)
}

// boundDevices wants no more to be said than there can be devices, and no more of one than the API allows.
func boundDevices(devices []resourcev1.AllocatedDeviceStatus) field.ErrorList {
	if len(devices) > resourcev1.AllocationResultsMaxSize {
		return field.ErrorList{field.TooMany(devicesPath, len(devices), resourcev1.AllocationResultsMaxSize)}
	}
	for i := range devices {
		if count, limit := len(devices[i].Conditions), resourcev1.AllocatedDeviceStatusMaxConditions; count > limit {
			return field.ErrorList{field.TooMany(devicesPath.Index(i).Child("conditions"), count, limit)}
		}
	}
	return nil
}

// validateReservations requires devices if there are consumers, and no new consumers for a claim that is being deleted.
func validateReservations(c, old *claim) field.ErrorList {
	var errs field.ErrorList
	at := statusPath.Child("reservedFor")
	before := map[resourcev1.ResourceClaimConsumerReference]bool{}
	for _, consumer := range old.Status.ReservedFor {
		before[consumer] = true
	}
	comes := false
	for i, consumer := range c.Status.ReservedFor {
		comes = comes || !before[consumer]
		errs = append(errs, fieldcheck.Required(consumer.Resource, at.Index(i).Child("resource"),
			fieldcheck.NotEmpty)...)
		errs = append(errs, fieldcheck.Required(consumer.Name, at.Index(i).Child("name"), fieldcheck.NotEmpty)...)
		errs = append(errs, fieldcheck.Required(string(consumer.UID), at.Index(i).Child("uid"),
			fieldcheck.NotEmpty)...)
	}
	switch {
	case len(c.Status.ReservedFor) > 0 && c.Status.Allocation == nil:
		errs = append(errs, field.Forbidden(at, "may not be specified when `allocation` is not set"))
	case comes && c.DeletionTimestamp != nil:
		errs = append(errs, field.Forbidden(at, "new entries may not be added while `deletionTimestamp` is set"))
	}
	return errs
}
