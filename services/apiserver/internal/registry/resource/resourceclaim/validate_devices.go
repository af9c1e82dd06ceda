package resourceclaim

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/registry/resource/device"
)

// validateAllocation checks the devices that a claim with the requests has just got.
func validateAllocation(allocation *resourcev1.AllocationResult, requests device.Requests) field.ErrorList {
	var errs field.ErrorList
	at := allocationPath.Child("devices")
	for i := range allocation.Devices.Results {
		errs = append(errs, validateResult(&allocation.Devices.Results[i], requests, at.Child("results").Index(i))...)
	}
	for i := range allocation.Devices.Config {
		config, at := &allocation.Devices.Config[i], at.Child("config").Index(i)
		for j, name := range config.Requests {
			errs = append(errs, requests.Validate(name, at.Child("requests").Index(j))...)
		}
		errs = append(errs, device.ValidateConfiguration(&config.DeviceConfiguration, false, at)...)
	}
	if allocation.NodeSelector != nil {
		at = allocationPath.Child("nodeSelector")
		errs = append(errs, podspec.ValidateNodeSelector(allocation.NodeSelector, at)...)
	}
	return errs
}

func validateResult(r *resourcev1.DeviceRequestAllocationResult, requests device.Requests, path *field.Path,
) field.ErrorList {
	errs := requests.Validate(r.Request, path.Child("request"))
	errs = append(errs, fieldcheck.Required(r.Device, path.Child("device"), validation.IsDNS1123Label)...)
	errs = append(errs, device.ValidateBindingConditions(r.BindingConditions, r.BindingFailureConditions, path)...)
	return append(errs, device.ValidateTolerations(r.Tolerations, path.Child("tolerations"))...)
}

// validateReport checks what a driver says of a device.
func validateReport(d *resourcev1.AllocatedDeviceStatus, path *field.Path) field.ErrorList {
	errs := device.ValidateID(d.Driver, d.Pool, d.Device, path)
	errs = append(errs, metav1validation.ValidateConditions(d.Conditions, path.Child("conditions"))...)
	if d.Data != nil && len(d.Data.Raw) > 0 {
		errs = append(errs, device.ValidateObject(d.Data, resourcev1.AllocatedDeviceStatusDataMaxLength,
			path.Child("data"))...)
	}
	if d.NetworkData != nil {
		for i, address := range d.NetworkData.IPs {
			at := path.Child("networkData", "ips").Index(i)
			errs = append(errs, validation.IsValidInterfaceAddress(at, address)...)
		}
	}
	return errs
}
