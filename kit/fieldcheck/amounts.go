package fieldcheck

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NotNegative is the error for amounts below zero.
const NotNegative = "must be greater than or equal to 0"

// Amounts wants well-formed names of resources and amounts of 0 or more.
func Amounts(amounts corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		path := path.Key(string(name))
		errs = append(errs, Messages(name, path, validation.IsQualifiedName(string(name)))...)
		if amount := amounts[name]; amount.Sign() < 0 {
			errs = append(errs, field.Invalid(path, amount.String(), NotNegative))
		}
	}
	return errs
}
