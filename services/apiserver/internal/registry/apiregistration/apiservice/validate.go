package apiservice

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"keelson.dev/kit/fieldcheck"
)

// The bounds of the priorities are those of the API.
const (
	maxGroupPriority   = 20000
	maxVersionPriority = 1000
)

// Validate returns what is wrong with an APIService.
func Validate(a *apiregistration.APIService) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if want := a.Spec.Version + "." + a.Spec.Group; a.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), a.Name,
			fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want)))
	}
	if a.Spec.Group == "" {
		if a.Spec.Version != "v1" {
			errs = append(errs, field.Required(spec.Child("group"), "only v1 may have an empty group"))
		}
	} else {
		errs = append(errs, fieldcheck.Messages(a.Spec.Group, spec.Child("group"),
			validation.IsDNS1123Subdomain(a.Spec.Group))...)
	}
	errs = append(errs, fieldcheck.Messages(a.Spec.Version, spec.Child("version"),
		validation.IsDNS1035Label(a.Spec.Version))...)
	errs = append(errs, priority(a.Spec.GroupPriorityMinimum, maxGroupPriority, spec.Child("groupPriorityMinimum"))...)
	errs = append(errs, priority(a.Spec.VersionPriority, maxVersionPriority, spec.Child("versionPriority"))...)
	if a.Spec.Service == nil {
		return append(errs, validateLocal(&a.Spec, spec)...)
	}
	return append(errs, validateRemote(&a.Spec, spec)...)
}

func priority(value, limit int32, path *field.Path) field.ErrorList {
	if value < 1 || value > limit {
		return field.ErrorList{field.Invalid(path, value, validation.InclusiveRangeError(1, int(limit)))}
	}
	return nil
}

// validateLocal checks an APIService without a Service: there is no connection that anything could be said of.
func validateLocal(s *apiregistration.APIServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.CABundle) > 0 {
		errs = append(errs, field.Invalid(path.Child("caBundle"), fmt.Sprintf("%d bytes", len(s.CABundle)),
			"local APIServices may not have a caBundle"))
	}
	if s.InsecureSkipTLSVerify {
		errs = append(errs, field.Invalid(path.Child("insecureSkipTLSVerify"), true,
			"local APIServices may not have insecureSkipTLSVerify"))
	}
	return errs
}

func validateRemote(s *apiregistration.APIServiceSpec, path *field.Path) field.ErrorList {
	service := path.Child("service")
	errs := fieldcheck.Required(s.Service.Namespace, service.Child("namespace"), fieldcheck.NotEmpty)
	errs = append(errs, fieldcheck.Required(s.Service.Name, service.Child("name"), fieldcheck.NotEmpty)...)
	if port := s.Service.Port; port != nil {
		errs = append(errs, fieldcheck.Messages(*port, service.Child("port"), validation.IsValidPortNum(int(*port)))...)
	}
	if s.InsecureSkipTLSVerify && len(s.CABundle) > 0 {
		errs = append(errs, field.Invalid(path.Child("insecureSkipTLSVerify"), true,
			"may not be true if caBundle is present"))
	}
	return errs
}

// ValidateStatusUpdate returns what is wrong with a new status.
func ValidateStatusUpdate(a, _ *apiregistration.APIService) field.ErrorList {
	var errs field.ErrorList
	for i, c := range a.Status.Conditions {
		errs = append(errs, fieldcheck.OneOf(c.Status, field.NewPath("status", "conditions").Index(i).Child("status"),
			apiregistration.ConditionTrue, apiregistration.ConditionFalse, apiregistration.ConditionUnknown)...)
	}
	return errs
}
