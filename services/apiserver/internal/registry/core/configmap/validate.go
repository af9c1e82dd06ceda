package configmap

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

const immutable = "field is immutable when `immutable` is set"

// Validate checks a new ConfigMap.
func Validate(c *corev1.ConfigMap) field.ErrorList {
	data, binaryData := field.NewPath("data"), field.NewPath("binaryData")
	errs := append(fieldcheck.DataKeys(c.Data, data), fieldcheck.DataKeys(c.BinaryData, binaryData)...)
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		if _, both := c.BinaryData[key]; both {
			errs = append(errs, field.Invalid(data.Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(c.Data[key])
	}
	for _, value := range c.BinaryData {
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

// ValidateUpdate checks a changed ConfigMap.
func ValidateUpdate(c, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if old.Immutable != nil && *old.Immutable {
		if c.Immutable == nil || !*c.Immutable {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutable))
		}
		if !apiequality.Semantic.DeepEqual(c.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), immutable))
		}
		if !apiequality.Semantic.DeepEqual(c.BinaryData, old.BinaryData) {
			errs = append(errs, field.Forbidden(field.NewPath("binaryData"), immutable))
		}
	}
	return append(errs, Validate(c)...)
}
