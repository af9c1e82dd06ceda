package device

import (
	"encoding/json"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateConfiguration returns what is wrong with what a driver is told. Of what is stored already the size is not
// asked.
func ValidateConfiguration(c *resourcev1.DeviceConfiguration, stored bool, path *field.Path) field.ErrorList {
	at := path.Child("opaque")
	if c.Opaque == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	limit := resourcev1.OpaqueParametersMaxLength
	if stored {
		limit = len(c.Opaque.Parameters.Raw)
	}
	return ValidateObject(&c.Opaque.Parameters, limit, at.Child("parameters"))
}

// ValidateObject wants a JSON object of no more than limit bytes.
func ValidateObject(object *runtime.RawExtension, limit int, path *field.Path) field.ErrorList {
	switch {
	case len(object.Raw) == 0:
		return field.ErrorList{field.Required(path, "")}
	case len(object.Raw) > limit:
		return field.ErrorList{field.TooLong(path, "", limit)}
	}
	var value any
	if err := json.Unmarshal(object.Raw, &value); err != nil {
		return field.ErrorList{field.Invalid(path, omitted, "error parsing data as JSON: "+err.Error())}
	}
	if value == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	if _, is := value.(map[string]any); !is {
		return field.ErrorList{field.Invalid(path, omitted, "must be a valid JSON object")}
	}
	return nil
}

// omitted stands for a value that is too much to repeat.
const omitted = "<value omitted>"
