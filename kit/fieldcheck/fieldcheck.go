// Package fieldcheck holds the checks of single fields that the validation of many resources shares. Each returns the
// errors under the given path; none looks beyond its arguments. The arguments are, in this order, the value (with the
// old one), its path, and what it is checked against.
//
//keelson:decision
package fieldcheck

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Messages that several resources give.
const (
	MustBePositive   = "must be greater than zero"
	SelectorMismatch = "`selector` does not match template `labels`"
	percentOrInteger = "must be an integer or percentage (e.g. '5%')"
)

// NonNegative wants value to be 0 or more.
func NonNegative[N ~int32 | ~int64](value N, path *field.Path) field.ErrorList {
	return validation.ValidateNonnegativeField(int64(value), path)
}

// NonNegativePtr is NonNegative for an optional value.
func NonNegativePtr[N ~int32 | ~int64](value *N, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return NonNegative(*value, path)
}

// AtMost wants value not to exceed limit, which detail names.
func AtMost[N ~int32 | ~int64](value N, path *field.Path, limit N, detail string) field.ErrorList {
	if value <= limit {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, detail)}
}

// Immutable wants a field to be what it was.
func Immutable(current, old any, path *field.Path) field.ErrorList {
	return validation.ValidateImmutableField(current, old, path)
}

// OneOf wants value to be one of supported, which the error lists in the given order. The empty string must be listed
// too.
func OneOf[S ~string](value S, path *field.Path, supported ...S) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

// OneOfPtr is OneOf for an optional value.
func OneOfPtr[S ~string](value *S, path *field.Path, supported ...S) field.ErrorList {
	if value == nil {
		return nil
	}
	return OneOf(*value, path, supported...)
}

// RequiredOneOf is OneOf that reports an empty value as missing.
func RequiredOneOf[S ~string](value S, path *field.Path, supported ...S) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return OneOf(value, path, supported...)
}

// NonNegativeOrPercent wants a number of 0 or more, or a string such as "25%", of no more percent than the largest
// number: a share of that can still be worked out.
func NonNegativeOrPercent(value intstr.IntOrString, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch value.Type {
	case intstr.String:
		errs = Messages(value, path, utilvalidation.IsValidPercent(value.StrVal))
		if percent, ok := Percent(value); ok && percent > math.MaxInt32 {
			errs = append(errs, field.Invalid(path, value, fmt.Sprintf("must not be greater than %d%%", math.MaxInt32)))
		}
	case intstr.Int:
		errs = append(errs, NonNegative(value.IntVal, path)...)
	default:
		errs = append(errs, field.Invalid(path, value, percentOrInteger))
	}
	return errs
}

// AtMostHundredPercent wants a percentage not to exceed 100%; plain numbers pass.
func AtMostHundredPercent(value intstr.IntOrString, path *field.Path) field.ErrorList {
	if percent, ok := Percent(value); ok && percent > 100 {
		return field.ErrorList{field.Invalid(path, value, "must not be greater than 100%")}
	}
	return nil
}

// Percent returns the number before the % sign, of which one that no int holds is the largest; ok is false for plain
// numbers and malformed strings.
func Percent(value intstr.IntOrString) (percent int, ok bool) {
	if value.Type != intstr.String || len(utilvalidation.IsValidPercent(value.StrVal)) != 0 {
		return 0, false
	}
	percent, _ = strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	return percent, true
}

// IsZero reports whether value is 0 or "0%".
func IsZero(value intstr.IntOrString) bool {
	if percent, ok := Percent(value); ok {
		return percent == 0
	}
	return value.Type == intstr.Int && value.IntVal == 0
}

// WorkloadSelector wants a selector that is present, well-formed and not empty, and template labels that it matches.
// selectorPath and labelsPath say where the two stand.
func WorkloadSelector(selector *metav1.LabelSelector, template map[string]string, kind string, selectorPath,
	labelsPath *field.Path) field.ErrorList {
	if selector == nil {
		return field.ErrorList{field.Required(selectorPath, "")}
	}
	errs := LabelSelector(selector, selectorPath)
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(selectorPath, selector, "empty selector is invalid for "+kind))
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return append(errs, field.Invalid(selectorPath, selector, "invalid label selector"))
	}
	if !parsed.Empty() && !parsed.Matches(labels.Set(template)) {
		errs = append(errs, field.Invalid(labelsPath, template, SelectorMismatch))
	}
	return errs
}

// LabelSelector checks the form of an optional selector.
func LabelSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)
}

// LabelKey checks the form of a label's key.
func LabelKey(key string, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelName(key, path)
}

// DataKeys checks the keys of ConfigMap and Secret data, in a stable order.
func DataKeys[V any](data map[string]V, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(data)) {
		errs = append(errs, Messages(key, path.Key(key), utilvalidation.IsConfigMapKey(key))...)
	}
	return errs
}

// DistinctTypes wants each condition of a status to have a type, which of finds, and no two to have the same one.
func DistinctTypes[C any, S ~string](conditions []C, path *field.Path, of func(*C) S) field.ErrorList {
	var errs field.ErrorList
	seen := map[S]bool{}
	for i := range conditions {
		kind, at := of(&conditions[i]), path.Index(i).Child("type")
		if kind == "" {
			errs = append(errs, field.Required(at, ""))
		} else if seen[kind] {
			errs = append(errs, field.Duplicate(at, kind))
		}
		seen[kind] = true
	}
	return errs
}
