package validatingadmissionpolicybinding

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		actions []admissionregistrationv1.ValidationAction
		want    []string
	}{
		{[]admissionregistrationv1.ValidationAction{"Deny", "Audit"}, nil},
		{[]admissionregistrationv1.ValidationAction{"Warn", "Audit"}, nil},
		{nil, []string{"spec.validationActions: Required value"}},
		{[]admissionregistrationv1.ValidationAction{"Deny", "Warn"}, []string{"spec.validationActions: Invalid value"}},
		{[]admissionregistrationv1.ValidationAction{"Audit", "Audit", "Refuse"},
			[]string{`spec.validationActions[1]: Duplicate value: "Audit"`,
				`spec.validationActions[2]: Unsupported value: "Refuse"`}},
	} {
		fieldtest.Check(t, Validate(&binding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "p", ValidationActions: row.actions}}), row.want...)
	}
	b := &binding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		ParamRef: &admissionregistrationv1.ParamRef{}, MatchResources: &admissionregistrationv1.MatchResources{},
		ValidationActions: []admissionregistrationv1.ValidationAction{"Deny"}}}
	Default(b)
	fieldtest.Check(t, Validate(b), "spec.policyName: Required", "spec.paramRef: Required",
		"spec.paramRef.parameterNotFoundAction: Required")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
