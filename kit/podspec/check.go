package podspec

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// Sentences that several fields share. They are the API's. Checks of other resources' fields too are in fieldcheck.
const (
	mustBeRelative    = "must be a relative path"
	onlyOneField      = "may not have more than one field specified at a time"
	mustBeFileMode    = "must be a number between 0 and 0777 (octal), both inclusive"
	mustNotHaveDotDot = "must not contain '..'"
)

// relativePath refuses a path that is absolute or climbs out of the directory that it is relative to.
func relativePath(value string, fldPath *field.Path) field.ErrorList {
	if path.IsAbs(value) {
		return field.ErrorList{field.Invalid(fldPath, value, mustBeRelative)}
	}
	return append(noBacksteps(value, fldPath), noNUL(value, fldPath)...)
}

func noBacksteps(value string, fldPath *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(value, "/"), "..") {
		return field.ErrorList{field.Invalid(fldPath, value, mustNotHaveDotDot)}
	}
	return nil
}

// projectedFile is relativePath for a file of a volume whose contents the API supplies: names that begin with two dots
// are taken by the way such volumes are replaced at once.
func projectedFile(value string, fldPath *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(fldPath, "")}
	}
	errs := relativePath(value, fldPath)
	if strings.HasPrefix(value, "..") && !strings.HasPrefix(value, "../") {
		errs = append(errs, field.Invalid(fldPath, value, "must not start with '..'"))
	}
	if path.Clean(value) == "." {
		errs = append(errs, field.Invalid(fldPath, value, "must name a file, not the volume itself"))
	}
	return errs
}

func fileMode(mode *int32, fldPath *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(fldPath, *mode, mustBeFileMode)}
	}
	return nil
}

func userID(id *int64, fldPath *field.Path) field.ErrorList {
	if id == nil {
		return nil
	}
	return fieldcheck.Messages(*id, fldPath, validation.IsValidUserID(*id))
}

func groupID(id *int64, fldPath *field.Path) field.ErrorList {
	if id == nil {
		return nil
	}
	return fieldcheck.Messages(*id, fldPath, validation.IsValidGroupID(*id))
}

// jsonName is the name of a struct's field as clients write it.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
