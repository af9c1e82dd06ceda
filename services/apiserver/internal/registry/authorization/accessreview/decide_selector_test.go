package accessreview

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestFieldsOf(t *testing.T) {
	requirement := func(operator metav1.FieldSelectorOperator,
		values ...string) *authorizationv1.FieldSelectorAttributes {
		return &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
			{Key: "spec.nodeName", Operator: operator, Values: values}}}
	}
	raw := func(selector string) *authorizationv1.FieldSelectorAttributes {
		return &authorizationv1.FieldSelectorAttributes{RawSelector: selector}
	}
	both := requirement(metav1.FieldSelectorOpIn, "a")
	both.RawSelector = "spec.nodeName=a"
	for name, row := range map[string]struct {
		selector       *authorizationv1.FieldSelectorAttributes
		want           string
		invalid, wrong bool
	}{
		"none":         {selector: nil, want: ""},
		"neither form": {selector: raw(""), want: "", invalid: true},
		"both forms":   {selector: both, want: "spec.nodeName=a", invalid: true},
		"as in a request": {selector: raw("spec.nodeName=a,metadata.name!=b"),
			want: "metadata.name!=b,spec.nodeName=a"},
		"not a selector":       {selector: raw("spec.nodeName"), want: "", wrong: true},
		"one value":            {selector: requirement(metav1.FieldSelectorOpIn, "a"), want: "spec.nodeName=a"},
		"all but one":          {selector: requirement(metav1.FieldSelectorOpNotIn, "a"), want: "spec.nodeName!=a"},
		"one of two":           {selector: requirement(metav1.FieldSelectorOpIn, "a", "b"), want: ""},
		"whatever it is":       {selector: requirement(metav1.FieldSelectorOpExists), want: ""},
		"an unknown operator":  {selector: requirement("Like", "a"), want: ""},
		"in without any value": {selector: requirement(metav1.FieldSelectorOpIn), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			if errs := validateFields(row.selector, field.NewPath("fieldSelector")); len(errs) > 0 != row.invalid {
				t.Errorf("validation says %v, want an error: %v", errs, row.invalid)
			}
			got, err := fieldsOf(row.selector)
			if text := textOf(got); text != row.want || err != nil != row.wrong {
				t.Errorf("it selects %q, %v, want %q and an error: %v", text, err, row.want, row.wrong)
			}
		})
	}
}

func textOf(requirements fields.Requirements) string {
	terms := make([]fields.Selector, 0, len(requirements))
	for _, r := range requirements {
		if r.Operator == "!=" {
			terms = append(terms, fields.OneTermNotEqualSelector(r.Field, r.Value))
			continue
		}
		terms = append(terms, fields.OneTermEqualSelector(r.Field, r.Value))
	}
	return fields.AndSelectors(terms...).String()
}
