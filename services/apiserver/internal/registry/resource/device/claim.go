package device

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// Requests are the names of a claim's requests, each with those of its alternatives.
type Requests map[string]sets.Set[string]

// RequestsOf are the names that other parts of the claim may refer to.
func RequestsOf(claim *resourcev1.DeviceClaim) Requests {
	names := Requests{}
	for i := range claim.Requests {
		alternatives := sets.New[string]()
		for j := range claim.Requests[i].FirstAvailable {
			alternatives.Insert(claim.Requests[i].FirstAvailable[j].Name)
		}
		names[claim.Requests[i].Name] = alternatives
	}
	return names
}

const notARequest = "must be the name of a request in the claim or the name of a request and a subrequest " +
	"separated by '/'"

// Validate wants name to be that of a request, or of a request and one of its alternatives.
func (r Requests) Validate(name string, path *field.Path) field.ErrorList {
	request, alternative, ofAlternative := strings.Cut(name, "/")
	alternatives, known := r[request]
	if known && (!ofAlternative || alternatives.Has(alternative)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, notARequest)}
}

func (r Requests) validateAll(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		errs = append(errs, r.Validate(name, path.Index(i))...)
	}
	return errs
}

// ValidateClaim returns what is wrong with the spec of a new claim.
func ValidateClaim(spec *resourcev1.ResourceClaimSpec, path *field.Path) field.ErrorList {
	errs := Generated(resourcev1.Validate_ResourceClaimSpec, spec, nil, path)
	if TooMany(errs) {
		return errs
	}
	claim, at := &spec.Devices, path.Child("devices")
	names, selectors := RequestsOf(claim), NewSelectors(nil)
	for i := range claim.Requests {
		errs = append(errs, validateRequest(&claim.Requests[i], selectors, at.Child("requests").Index(i))...)
	}
	for i := range claim.Constraints {
		errs = append(errs, validateConstraint(&claim.Constraints[i], names, at.Child("constraints").Index(i))...)
	}
	for i := range claim.Config {
		config, at := &claim.Config[i], at.Child("config").Index(i)
		errs = append(errs, names.validateAll(config.Requests, at.Child("requests"))...)
		errs = append(errs, ValidateConfiguration(&config.DeviceConfiguration, false, at)...)
	}
	return errs
}

// TooMany reports whether a list is longer than allowed: then the content of the lists is not validated, which could be
// much.
func TooMany(errs field.ErrorList) bool {
	for _, err := range errs {
		if err.Type == field.ErrorTypeTooMany {
			return true
		}
	}
	return false
}

func validateRequest(r *resourcev1.DeviceRequest, selectors *Selectors, path *field.Path) field.ErrorList {
	errs := fieldcheck.Required(r.Name, path.Child("name"), validation.IsDNS1123Label)
	const one = "exactly one of `exactly` or `firstAvailable` is required"
	switch {
	case r.Exactly == nil && len(r.FirstAvailable) == 0:
		return append(errs, field.Required(path, one))
	case r.Exactly != nil && len(r.FirstAvailable) > 0:
		return append(errs, field.Invalid(path, r.Name, one+", but multiple fields are set"))
	case r.Exactly != nil:
		exact, at := r.Exactly, path.Child("exactly")
		errs = append(errs, fieldcheck.Required(exact.DeviceClassName, at.Child("deviceClassName"),
			fieldcheck.DNSSubdomain)...)
		return append(errs, validateDemand(demand{exact.Selectors, exact.AllocationMode, exact.Count,
			exact.Tolerations}, selectors, at)...)
	}
	for i := range r.FirstAvailable {
		alternative, at := &r.FirstAvailable[i], path.Child("firstAvailable").Index(i)
		errs = append(errs, fieldcheck.Required(alternative.Name, at.Child("name"), validation.IsDNS1123Label)...)
		errs = append(errs, validateDemand(demand{alternative.Selectors, alternative.AllocationMode,
			alternative.Count, alternative.Tolerations}, selectors, at)...)
	}
	return errs
}

// demand is what a request and an alternative have in common.
type demand struct {
	selectors   []resourcev1.DeviceSelector
	mode        resourcev1.DeviceAllocationMode
	count       int64
	tolerations []resourcev1.DeviceToleration
}

func validateDemand(d demand, selectors *Selectors, path *field.Path) field.ErrorList {
	errs := selectors.Validate(d.selectors, path.Child("selectors"))
	switch d.mode {
	case resourcev1.DeviceAllocationModeAll:
		if d.count != 0 {
			errs = append(errs, field.Invalid(path.Child("count"), d.count,
				"must not be specified when allocationMode is 'All'"))
		}
	case resourcev1.DeviceAllocationModeExactCount:
		if d.count <= 0 {
			errs = append(errs, field.Invalid(path.Child("count"), d.count, fieldcheck.MustBePositive))
		}
	}
	return append(errs, ValidateTolerations(d.tolerations, path.Child("tolerations"))...)
}

// ValidateTolerations checks the values of tolerations: only where one is compared there is one.
func ValidateTolerations(tolerations []resourcev1.DeviceToleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range tolerations {
		value, at := tolerations[i].Value, path.Index(i).Child("value")
		switch tolerations[i].Operator {
		case resourcev1.DeviceTolerationOpExists:
			if value != "" {
				errs = append(errs, field.Invalid(at, value, "must be empty for operator `Exists`"))
			}
		case resourcev1.DeviceTolerationOpEqual:
			errs = append(errs, fieldcheck.Messages(value, at, validation.IsValidLabelValue(value))...)
		}
	}
	return errs
}

func validateConstraint(c *resourcev1.DeviceConstraint, names Requests, path *field.Path) field.ErrorList {
	errs := names.validateAll(c.Requests, path.Child("requests"))
	const one = "exactly one of `matchAttribute` or `distinctAttribute` is required"
	switch {
	case c.MatchAttribute == nil && c.DistinctAttribute == nil:
		errs = append(errs, field.Required(path, one))
	case c.MatchAttribute != nil && c.DistinctAttribute != nil:
		errs = append(errs, field.Invalid(path, *c.MatchAttribute, one+", but multiple fields are set"))
	}
	return errs
}
