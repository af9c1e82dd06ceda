package podspec

import (
	"path"
	"reflect"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Sentences that several fields share. They are the API's.
const (
	mustBePositive    = "must be greater than zero"
	mustBeRelative    = "must be a relative path"
	onlyOneField      = "may not have more than one field specified at a time"
	mustBeFileMode    = "must be a number between 0 and 0777 (octal), both inclusive"
	mustNotHaveDotDot = "must not contain '..'"
)

// invalid turns each message about a value into an error at its path.
func invalid(fldPath *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(fldPath, value, message))
	}
	return errs
}

// required refuses the empty string and passes any other to the check.
func required(fldPath *field.Path, value string, check func(string) []string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	return invalid(fldPath, value, check(value))
}

// optional is required for a field that may be empty.
func optional(fldPath *field.Path, value string, check func(string) []string) field.ErrorList {
	if value == "" {
		return nil
	}
	return invalid(fldPath, value, check(value))
}

func notEmpty(string) []string { return nil }

// dnsSubdomain checks the name of another API object.
func dnsSubdomain(name string) []string { return apivalidation.NameIsDNSSubdomain(name, false) }

// oneOf refuses a value that is not listed; an empty one is reported as missing.
func oneOf[T ~string](fldPath *field.Path, value T, supported ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	return anyOf(fldPath, value, supported...)
}

// anyOf refuses a value that is not listed, the empty one too.
func anyOf[T ~string](fldPath *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(fldPath, value, supported)}
}

// optionalOneOf is anyOf for a field that may be absent.
func optionalOneOf[T ~string](fldPath *field.Path, value *T, supported ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return anyOf(fldPath, *value, supported...)
}

func nonNegative(fldPath *field.Path, value int64) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(value, fldPath)
}

// relativePath refuses a path that is absolute or climbs out of the directory that it is relative to.
func relativePath(fldPath *field.Path, value string) field.ErrorList {
	if path.IsAbs(value) {
		return field.ErrorList{field.Invalid(fldPath, value, mustBeRelative)}
	}
	return noBacksteps(fldPath, value)
}

func noBacksteps(fldPath *field.Path, value string) field.ErrorList {
	if slices.Contains(strings.Split(value, "/"), "..") {
		return field.ErrorList{field.Invalid(fldPath, value, mustNotHaveDotDot)}
	}
	return nil
}

// projectedFile is relativePath for a file of a volume whose contents the API supplies: names that begin with two dots
// are taken by the way such volumes are replaced at once.
func projectedFile(fldPath *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	errs := relativePath(fldPath, value)
	if strings.HasPrefix(value, "..") && !strings.HasPrefix(value, "../") {
		errs = append(errs, field.Invalid(fldPath, value, "must not start with '..'"))
	}
	return errs
}

func fileMode(fldPath *field.Path, mode *int32) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(fldPath, *mode, mustBeFileMode)}
	}
	return nil
}

func labelSelector(fldPath *field.Path, selector *metav1.LabelSelector) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, fldPath)
}

func labelKey(fldPath *field.Path, key string) field.ErrorList {
	return metav1validation.ValidateLabelName(key, fldPath)
}

func userID(fldPath *field.Path, id *int64) field.ErrorList {
	if id == nil {
		return nil
	}
	return invalid(fldPath, *id, validation.IsValidUserID(*id))
}

func groupID(fldPath *field.Path, id *int64) field.ErrorList {
	if id == nil {
		return nil
	}
	return invalid(fldPath, *id, validation.IsValidGroupID(*id))
}

// jsonName is the name of a struct's field as clients write it.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
