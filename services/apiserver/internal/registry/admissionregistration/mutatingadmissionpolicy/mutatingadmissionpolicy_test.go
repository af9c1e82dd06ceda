package mutatingadmissionpolicy

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// of is a valid policy, changed and defaulted.
func of(change func(*policy)) *policy {
	p := &policy{Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
						Resources: []string{"pods"}}}}}},
		Mutations: []admissionregistrationv1.Mutation{
			{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{
				Expression: `[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}}]`}},
			{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
					Expression: `Object{metadata: Object.metadata{labels: {"a": "b"}}}`}},
		}}}
	change(p)
	Default(p)
	return p
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*policy)
		want   []string
	}{
		{"as it is", func(*policy) {}, nil},
		{"nothing", func(p *policy) { p.Spec = admissionregistrationv1.MutatingAdmissionPolicySpec{} },
			[]string{"spec.matchConstraints: Required", "spec.mutations: Required"}},
		{"about deletions", func(p *policy) {
			p.Spec.MatchConstraints.ResourceRules[0].Operations[0] = admissionregistrationv1.Delete
		}, []string{`spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: "DELETE"`}},
		{"unknown policies", func(p *policy) {
			p.Spec.ReinvocationPolicy = "Always"
			p.Spec.FailurePolicy = new(admissionregistrationv1.FailurePolicyType("Maybe"))
		}, []string{`spec.failurePolicy: Unsupported value: "Maybe"`,
			`spec.reinvocationPolicy: Unsupported value: "Always"`}},
		{"without patches", func(p *policy) {
			p.Spec.Mutations[0].JSONPatch, p.Spec.Mutations[1].ApplyConfiguration = nil, nil
		}, []string{"spec.mutations[0].jsonPatch: Required", "spec.mutations[1].applyConfiguration: Required"}},
		{"with the other patch", func(p *policy) {
			m := p.Spec.Mutations
			m[0].ApplyConfiguration, m[1].JSONPatch = m[1].ApplyConfiguration, m[0].JSONPatch
		}, []string{"spec.mutations[0].applyConfiguration: Forbidden", "spec.mutations[1].jsonPatch: Forbidden"}},
		{"an unknown patch", func(p *policy) {
			p.Spec.Mutations = []admissionregistrationv1.Mutation{{PatchType: "Merge"}, {}}
		}, []string{`spec.mutations[0].patchType: Unsupported value: "Merge"`,
			"spec.mutations[1].patchType: Required"}},
		{"no patches", func(p *policy) {
			p.Spec.Mutations[0].JSONPatch = &admissionregistrationv1.JSONPatch{Expression: "true"}
			p.Spec.Mutations[1].ApplyConfiguration = &admissionregistrationv1.ApplyConfiguration{}
		}, []string{"spec.mutations[0].jsonPatch.expression: Invalid value",
			"spec.mutations[1].applyConfiguration.expression: Required"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(of(row.change)), row.want...) })
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
