package validatingadmissionpolicy

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// of is a valid policy, changed and defaulted.
func of(change func(*policy)) *policy {
	p := &policy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
						Resources: []string{"pods"}}}}}},
		Validations: []admissionregistrationv1.Validation{{Expression: "true"}}}}
	change(p)
	Default(p)
	return p
}

func TestValidate(t *testing.T) {
	annotations := func(n int, size int) func(*policy) {
		return func(p *policy) {
			for i := range n {
				text := strings.Repeat("a", size-2)
				p.Spec.AuditAnnotations = append(p.Spec.AuditAnnotations,
					admissionregistrationv1.AuditAnnotation{Key: fmt.Sprint("k", i), ValueExpression: "'" + text + "'"})
			}
		}
	}
	validation := func(v admissionregistrationv1.Validation) func(*policy) {
		return func(p *policy) { p.Spec.Validations = []admissionregistrationv1.Validation{v} }
	}
	for _, row := range []struct {
		name   string
		change func(*policy)
		want   []string
	}{
		{"as it is", func(*policy) {}, nil},
		{"nothing", func(p *policy) { p.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{} },
			[]string{"spec.matchConstraints: Required", "spec.validations: Required",
				"spec.auditAnnotations: Required"}},
		{"an unknown failure policy", func(p *policy) {
			p.Spec.FailurePolicy = new(admissionregistrationv1.FailurePolicyType("Maybe"))
		}, []string{`spec.failurePolicy: Unsupported value: "Maybe"`}},
		{"annotations alone", func(p *policy) { p.Spec.Validations = nil; annotations(1, 10)(p) }, nil},
		{"20 annotations", annotations(20, 10), nil},
		{"21 annotations", annotations(21, 10), []string{"spec.auditAnnotations: Too many: 21"}},
		{"the longest value", annotations(1, 5120), nil},
		{"a byte more", annotations(1, 5121), []string{"spec.auditAnnotations[0].valueExpression: Too long"}},
		{"keys twice and wrong", func(p *policy) {
			annotations(1, 10)(p)
			p.Spec.AuditAnnotations = append(p.Spec.AuditAnnotations, p.Spec.AuditAnnotations[0],
				admissionregistrationv1.AuditAnnotation{Key: "a b", ValueExpression: "null"})
		}, []string{`spec.auditAnnotations[1].key: Duplicate value: "k0"`,
			`spec.auditAnnotations[2].key: Invalid value: "a b"`}},
		{"no expression", validation(admissionregistrationv1.Validation{}),
			[]string{"spec.validations[0].expression: Required value"}},
		{"messages", validation(admissionregistrationv1.Validation{Expression: "true", Message: "a",
			MessageExpression: `"a"`, Reason: new(metav1.StatusReasonForbidden)}), nil},
		{"wrong messages", validation(admissionregistrationv1.Validation{Expression: "true", Message: "a\nb",
			MessageExpression: "1", Reason: new(metav1.StatusReasonNotFound)}), []string{
			"spec.validations[0].message: Invalid value", "spec.validations[0].messageExpression: Invalid value",
			`spec.validations[0].reason: Unsupported value: "NotFound"`}},
		{"a message of nothing", validation(admissionregistrationv1.Validation{Expression: "true", Message: " "}),
			[]string{"spec.validations[0].message: Invalid value"}},
		{"parameters", func(p *policy) {
			p.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
			p.Spec.Validations[0].Expression = `params.data.a == "b"`
		}, nil},
		{"parameters that there are not", func(p *policy) { p.Spec.Validations[0].Expression = `params.data.a == "b"` },
			[]string{"spec.validations[0].expression: Invalid value"}},
		{"a wrong kind of parameters", func(p *policy) { p.Spec.ParamKind = &admissionregistrationv1.ParamKind{} },
			[]string{"spec.paramKind.apiVersion: Required", "spec.paramKind.kind: Required"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(of(row.change)), row.want...) })
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	warned := func(ref, warning string) *policy {
		return of(func(p *policy) {
			p.Status.TypeChecking = &admissionregistrationv1.TypeChecking{ExpressionWarnings: []admissionregistrationv1.
				ExpressionWarning{{FieldRef: ref, Warning: warning}}}
		})
	}
	fieldtest.Check(t, ValidateStatusUpdate(of(func(*policy) {}), nil))
	fieldtest.Check(t, ValidateStatusUpdate(warned("spec.validations[0].expression", "w"), nil))
	fieldtest.Check(t, ValidateStatusUpdate(warned("", ""), nil),
		"status.typeChecking.expressionWarnings[0].warning: Required value",
		"status.typeChecking.expressionWarnings[0].fieldRef: Required value")
	fieldtest.Check(t, ValidateStatusUpdate(warned("spec[", "w"), nil),
		`status.typeChecking.expressionWarnings[0].fieldRef: Invalid value: "spec["`)
	p := of(func(p *policy) {
		p.Status.Conditions = []metav1.Condition{{Type: "A", Status: "Maybe", Reason: "R",
			LastTransitionTime: metav1.Unix(1, 0)}}
	})
	fieldtest.Check(t, ValidateStatusUpdate(p, nil), "status.conditions[0].status: Unsupported value")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
