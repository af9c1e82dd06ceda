package fieldcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The API's limits of the parameters of a driver: how many parameters, and the bytes of all keys and values together.
const (
	maxParameters     = 512
	maxParameterBytes = 256 * 1024
)

// DriverName checks the name of a storage driver.
func DriverName(name string) []string {
	messages := validation.IsDNS1123Subdomain(strings.ToLower(name))
	if len(name) > validation.DNS1123LabelMaxLength {
		messages = append(messages, validation.MaxLenError(validation.DNS1123LabelMaxLength))
	}
	return messages
}

// Parameters checks the parameters of a driver; only it knows what that means.
func Parameters(parameters map[string]string, path *field.Path) field.ErrorList {
	if len(parameters) > maxParameters {
		return field.ErrorList{field.TooMany(path, len(parameters), maxParameters)}
	}
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		if key == "" {
			errs = append(errs, field.Invalid(path, key, "field can not be empty."))
		}
		size += len(key) + len(parameters[key])
	}
	if size > maxParameterBytes {
		errs = append(errs, field.TooLong(path, "", maxParameterBytes))
	}
	return errs
}

// AtMostBytes wants text of no more than limit bytes.
func AtMostBytes(text string, path *field.Path, limit int) field.ErrorList {
	if len(text) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLong(path, fmt.Sprintf("%.20s...", text), limit)}
}
