package accessreview

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fieldsOf is the field selector that a review asks about. Requirements that it does not understand are left out: a
// request with fewer requirements asks for more. No authorizer here decides by labels.
func fieldsOf(selector *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	switch {
	case selector == nil:
		return nil, nil
	case selector.RawSelector != "":
		parsed, err := fields.ParseSelector(selector.RawSelector)
		if err != nil {
			return nil, fmt.Errorf("reading the field selector: %w", err)
		}
		return parsed.Requirements(), nil
	}
	var all fields.Requirements
	for _, r := range selector.Requirements {
		switch {
		case len(r.Values) != 1:
		case r.Operator == metav1.FieldSelectorOpIn:
			all = append(all, fields.Requirement{Field: r.Key, Operator: selection.Equals, Value: r.Values[0]})
		case r.Operator == metav1.FieldSelectorOpNotIn:
			all = append(all, fields.Requirement{Field: r.Key, Operator: selection.NotEquals, Value: r.Values[0]})
		}
	}
	return all, nil
}

// validateFields wants one way of writing the selector down.
func validateFields(selector *authorizationv1.FieldSelectorAttributes, at *field.Path) field.ErrorList {
	switch {
	case selector == nil:
		return nil
	case selector.RawSelector != "" && len(selector.Requirements) > 0:
		return field.ErrorList{field.Invalid(at.Child("rawSelector"), selector.RawSelector,
			"may not be specified at the same time as requirements")}
	case selector.RawSelector == "" && len(selector.Requirements) == 0:
		return field.ErrorList{field.Required(at.Child("requirements"),
			fmt.Sprintf("when %s is specified, requirements or rawSelector is required", at))}
	}
	return nil
}
