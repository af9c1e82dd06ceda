package limitrange

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
)

// Validate returns what is wrong with a defaulted LimitRange.
func Validate(l *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[corev1.LimitType]()
	for i := range l.Spec.Limits {
		item, at := &l.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		if types.Has(item.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), item.Type))
		}
		types.Insert(item.Type)
		errs = append(errs, fieldcheck.Required(string(item.Type), at.Child("type"), limitType)...)
		errs = append(errs, validateItem(item, at)...)
	}
	return errs
}

// limitType requires a type of the API, or one with a domain as its prefix.
func limitType(name string) []string {
	switch corev1.LimitType(name) {
	case corev1.LimitTypeContainer, corev1.LimitTypePod, corev1.LimitTypePersistentVolumeClaim:
		return nil
	}
	messages := validation.IsQualifiedName(name)
	if len(messages) == 0 && !strings.Contains(name, "/") {
		return []string{"must be a standard limit type or fully qualified"}
	}
	return messages
}

func validateItem(item *corev1.LimitRangeItem, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	lists := []struct {
		name    string
		amounts corev1.ResourceList
	}{
		{"max", item.Max},
		{"min", item.Min},
		{"default", item.Default},
		{"defaultRequest", item.DefaultRequest},
		{"maxLimitRequestRatio", item.MaxLimitRequestRatio},
	}
	names := sets.New[corev1.ResourceName]()
	for _, list := range lists {
		for _, name := range slices.Sorted(maps.Keys(list.amounts)) {
			names.Insert(name)
			errs = append(errs, validateName(item.Type, name, path.Child(list.name).Key(string(name)))...)
		}
	}
	switch item.Type {
	case corev1.LimitTypePod:
		errs = append(errs, forbidDefaults(item, path)...)
	case corev1.LimitTypePersistentVolumeClaim:
		_, least := item.Min[corev1.ResourceStorage]
		if _, most := item.Max[corev1.ResourceStorage]; !least && !most {
			errs = append(errs, field.Required(path.Child("limits"),
				"either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	for _, name := range sets.List(names) {
		errs = append(errs, validateOrder(item, name, path)...)
		errs = append(errs, validateRatio(item, name, path)...)
	}
	return errs
}

// validateName wants of what Pods and containers are bounded by what a container may ask for.
func validateName(limit corev1.LimitType, name corev1.ResourceName, path *field.Path) field.ErrorList {
	if limit == corev1.LimitTypePod || limit == corev1.LimitTypeContainer {
		return podspec.ValidateContainerResourceName(name, path)
	}
	return fieldcheck.Messages(string(name), path, validation.IsQualifiedName(string(name)))
}

func forbidDefaults(item *corev1.LimitRangeItem, path *field.Path) field.ErrorList {
	const detail = "may not be specified when `type` is 'Pod'"
	var errs field.ErrorList
	if len(item.Default) > 0 {
		errs = append(errs, field.Forbidden(path.Child("default"), detail))
	}
	if len(item.DefaultRequest) > 0 {
		errs = append(errs, field.Forbidden(path.Child("defaultRequest"), detail))
	}
	return errs
}

// validateOrder wants, of what is set, the minimum <= the default request <= the default limit <= the maximum.
func validateOrder(item *corev1.LimitRangeItem, name corev1.ResourceName, path *field.Path) field.ErrorList {
	type bound struct {
		child, text string
		amounts     corev1.ResourceList
	}
	least := bound{"min", "min", item.Min}
	request := bound{"defaultRequest", "default request", item.DefaultRequest}
	limit := bound{"default", "default", item.Default}
	most := bound{"max", "max", item.Max}
	var errs field.ErrorList
	for _, pair := range [][2]bound{
		{least, most}, {least, request}, {least, limit}, {request, most}, {request, limit}, {limit, most},
	} {
		lower, isLower := pair[0].amounts[name]
		upper, isUpper := pair[1].amounts[name]
		if isLower && isUpper && lower.Cmp(upper) > 0 {
			errs = append(errs, field.Invalid(path.Child(pair[0].child).Key(string(name)), lower.String(),
				fmt.Sprintf("%s value %s is greater than %s value %s", pair[0].text, lower.String(), pair[1].text,
					upper.String())))
		}
	}
	return errs
}

// validateRatio wants a ratio of limit to request that the bounds allow.
func validateRatio(item *corev1.LimitRangeItem, name corev1.ResourceName, path *field.Path) field.ErrorList {
	ratio, set := item.MaxLimitRequestRatio[name]
	if !set {
		return nil
	}
	at := path.Child("maxLimitRequestRatio").Key(string(name))
	if ratio.Cmp(resource.MustParse("1")) < 0 {
		return field.ErrorList{field.Invalid(at, ratio.String(), fmt.Sprintf("ratio %s is less than 1",
			ratio.String()))}
	}
	least, most := item.Min[name], item.Max[name]
	if least.Sign() <= 0 || most.Sign() <= 0 {
		return nil
	}
	if widest := most.AsApproximateFloat64() / least.AsApproximateFloat64(); ratio.AsApproximateFloat64() > widest {
		return field.ErrorList{field.Invalid(at, ratio.String(),
			fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), widest))}
	}
	return nil
}
