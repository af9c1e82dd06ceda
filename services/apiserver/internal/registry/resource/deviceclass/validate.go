package deviceclass

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/resource/device"
)

var specPath = field.NewPath("spec")

// Validate returns what is wrong with a new class.
func Validate(c *resourcev1.DeviceClass) field.ErrorList { return validate(&c.Spec, nil) }

// ValidateUpdate returns what is wrong with c as the successor of old: selectors and what drivers are told stay valid
// as they are stored.
func ValidateUpdate(c, old *resourcev1.DeviceClass) field.ErrorList {
	return validate(&c.Spec, &old.Spec)
}

func validate(spec, old *resourcev1.DeviceClassSpec) field.ErrorList {
	errs := device.Generated(resourcev1.Validate_DeviceClassSpec, spec, old, specPath)
	if device.TooMany(errs) {
		return errs
	}
	var selectors []resourcev1.DeviceSelector
	stored := false
	if old != nil {
		selectors, stored = old.Selectors, equality.Semantic.DeepEqual(spec.Config, old.Config)
	}
	errs = append(errs, device.NewSelectors(selectors).Validate(spec.Selectors, specPath.Child("selectors"))...)
	for i := range spec.Config {
		at := specPath.Child("config").Index(i)
		errs = append(errs, device.ValidateConfiguration(&spec.Config[i].DeviceConfiguration, stored, at)...)
	}
	return errs
}
