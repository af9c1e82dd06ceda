package fieldcheck

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Messages turns the sentences of a check into errors about value at path.
func Messages(value any, path *field.Path, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// Required refuses the empty string and passes any other to the check.
func Required(value string, path *field.Path, check func(string) []string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return Messages(value, path, check(value))
}

// Optional is Required for a field that may be empty.
func Optional(value string, path *field.Path, check func(string) []string) field.ErrorList {
	if value == "" {
		return nil
	}
	return Messages(value, path, check(value))
}

// NotEmpty is a check for Required that asks for nothing else.
func NotEmpty(string) []string { return nil }

// DNSSubdomain checks the name of another API object.
func DNSSubdomain(name string) []string { return validation.NameIsDNSSubdomain(name, false) }
