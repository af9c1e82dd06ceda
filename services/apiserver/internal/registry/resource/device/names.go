package device

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// ValidateID checks the three names by which a device is known.
func ValidateID(driver, pool, device string, path *field.Path) field.ErrorList {
	errs := fieldcheck.Required(driver, path.Child("driver"), fieldcheck.DriverName)
	errs = append(errs, fieldcheck.Required(pool, path.Child("pool"), PoolName)...)
	return append(errs, fieldcheck.Required(device, path.Child("device"), validation.IsDNS1123Label)...)
}

// PoolName wants DNS subdomains with slashes between them.
func PoolName(name string) []string {
	var messages []string
	if len(name) > resourcev1.PoolNameMaxLength {
		messages = append(messages, validation.MaxLenError(resourcev1.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		messages = append(messages, validation.IsDNS1123Subdomain(part)...)
	}
	return messages
}

// QualifiedName wants the identifier of an attribute or a capacity, if need be behind the domain that it is of.
func QualifiedName(name string) []string {
	domain, id, qualified := strings.Cut(name, "/")
	if !qualified {
		return identifier(name)
	}
	if domain == "" {
		return []string{"the domain must not be empty"}
	}
	if strings.Contains(id, "/") {
		return []string{"must not contain more than one slash"}
	}
	return append(fieldcheck.DriverName(domain), identifier(id)...)
}

func identifier(id string) []string {
	if id == "" {
		return []string{"the name must not be empty"}
	}
	messages := content.IsCIdentifier(id)
	if len(id) > resourcev1.DeviceMaxIDLength {
		messages = append(messages, validation.MaxLenError(resourcev1.DeviceMaxIDLength))
	}
	return messages
}

// ValidateBindingConditions checks the conditions that a device waits for before its Pod is bound, and those that end
// the wait: the types are told apart, and there are none of one kind without the other.
func ValidateBindingConditions(conditions, failures []string, path *field.Path) field.ErrorList {
	at, failuresAt := path.Child("bindingConditions"), path.Child("bindingFailureConditions")
	errs := validateConditionTypes(conditions, at)
	errs = append(errs, validateConditionTypes(failures, failuresAt)...)
	for i, failure := range failures {
		if slices.Contains(conditions, failure) {
			errs = append(errs, field.Invalid(failuresAt.Index(i), failure,
				"bindingFailureConditions must not overlap with bindingConditions"))
		}
	}
	switch {
	case len(conditions) == 0 && len(failures) > 0:
		errs = append(errs, field.Invalid(at, conditions,
			"bindingConditions are required to use bindingFailureConditions"))
	case len(failures) == 0 && len(conditions) > 0:
		errs = append(errs, field.Invalid(failuresAt, failures,
			"bindingFailureConditions are required to use bindingConditions"))
	}
	return errs
}

func validateConditionTypes(types []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range types {
		errs = append(errs, fieldcheck.LabelKey(name, path.Index(i))...)
		if slices.Contains(types[:i], name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}
