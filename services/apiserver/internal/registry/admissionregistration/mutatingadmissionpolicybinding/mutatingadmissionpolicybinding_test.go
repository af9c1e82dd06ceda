package mutatingadmissionpolicybinding

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func TestValidate(t *testing.T) {
	b := &binding{Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "p"}}
	fieldtest.Check(t, Validate(b))
	b = &binding{Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
		ParamRef: &admissionregistrationv1.ParamRef{}, MatchResources: &admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
						Resources: []string{"pods"}}}}}}}}
	Default(b)
	fieldtest.Check(t, Validate(b), "spec.policyName: Required", "spec.paramRef: Required",
		"spec.paramRef.parameterNotFoundAction: Required",
		`spec.matchResources.resourceRules[0].operations[0]: Unsupported value: "DELETE"`)
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
