package controllerrevision

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

var dataPath = field.NewPath("data")

// Validate returns what is wrong with r.
func Validate(r *appsv1.ControllerRevision) field.ErrorList {
	return append(validateData(r), fieldcheck.NonNegative(r.Revision, field.NewPath("revision"))...)
}

// validateData wants JSON: a client that writes protobuf could store what no other can read.
func validateData(r *appsv1.ControllerRevision) field.ErrorList {
	switch {
	case len(r.Data.Raw) == 0 && r.Data.Object == nil:
		return field.ErrorList{field.Required(dataPath, "data is mandatory")}
	case len(r.Data.Raw) > 0 && !json.Valid(r.Data.Raw):
		return field.ErrorList{field.Invalid(dataPath, field.OmitValueType{}, "must be valid JSON")}
	}
	return nil
}

// ValidateUpdate returns what is wrong with r as the successor of old: its number may change, what it holds may not.
func ValidateUpdate(r, old *appsv1.ControllerRevision) field.ErrorList {
	return append(Validate(r), fieldcheck.Immutable(r.Data, old.Data, dataPath)...)
}
