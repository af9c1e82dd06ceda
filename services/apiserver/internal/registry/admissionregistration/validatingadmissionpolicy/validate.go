package validatingadmissionpolicy

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/expression"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/match"
)

const (
	maxAnnotations = 20
	// maxAnnotationExpression is in bytes. A value may be twice as long.
	maxAnnotationExpression = 5 << 10
)

// Validate returns what is wrong with a defaulted policy.
func Validate(p *policy) field.ErrorList { return ValidateUpdate(p, &policy{}) }

// ValidateUpdate returns what is wrong with p as the successor of old.
func ValidateUpdate(p, old *policy) field.ErrorList {
	spec, path := &p.Spec, field.NewPath("spec")
	errs := fieldcheck.RequiredOneOf(ptr.Deref(spec.FailurePolicy, ""), path.Child("failurePolicy"),
		admissionregistrationv1.Fail, admissionregistrationv1.Ignore)
	errs = append(errs, match.ParamKind(spec.ParamKind, path.Child("paramKind"))...)
	errs = append(errs, match.Constraints(spec.MatchConstraints, path.Child("matchConstraints"))...)
	checker := expression.NewChecker(spec.ParamKind != nil, texts(&old.Spec)...)
	errs = append(errs, checker.CheckConditions(spec.MatchConditions, path.Child("matchConditions"))...)
	errs = append(errs, checker.WithVariables(spec.Variables, path.Child("variables"))...)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const either = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(path.Child("validations"), either),
			field.Required(path.Child("auditAnnotations"), either))
	}
	for i := range spec.Validations {
		errs = append(errs, validateOne(checker, &spec.Validations[i], path.Child("validations").Index(i))...)
	}
	return append(errs, validateAnnotations(checker, p, path.Child("auditAnnotations"))...)
}

// texts are all expressions of a policy.
func texts(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) []string {
	all := expression.Texts(spec.MatchConditions)
	for _, v := range spec.Variables {
		all = append(all, v.Expression)
	}
	for _, v := range spec.Validations {
		all = append(all, v.Expression, v.MessageExpression)
	}
	for _, a := range spec.AuditAnnotations {
		all = append(all, a.ValueExpression)
	}
	return all
}

func validateOne(checker *expression.Checker, v *admissionregistrationv1.Validation, path *field.Path,
) field.ErrorList {
	errs := checker.Check(&validating.ValidationCondition{Expression: v.Expression}, path.Child("expression"))
	if v.MessageExpression != "" {
		errs = append(errs, checker.CheckMessage(
			&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression},
			path.Child("messageExpression"))...)
	}
	switch message := strings.TrimSpace(v.Message); {
	case v.Message != "" && message == "":
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "must say something if it is there"))
	case strings.ContainsAny(message, "\r\n"):
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "must not contain line breaks"))
	}
	return append(errs, fieldcheck.OneOfPtr(v.Reason, path.Child("reason"), metav1.StatusReasonForbidden,
		metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge, metav1.StatusReasonUnauthorized)...)
}

func validateAnnotations(checker *expression.Checker, p *policy, path *field.Path) field.ErrorList {
	all := p.Spec.AuditAnnotations
	if len(all) > maxAnnotations {
		return field.ErrorList{field.TooMany(path, len(all), maxAnnotations)}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, a := range all {
		key, value := path.Index(i).Child("key"), path.Index(i).Child("valueExpression")
		// The annotation is called by the policy and the key.
		errs = append(errs, fieldcheck.Messages(a.Key, key, validation.IsQualifiedName(p.Name+"/"+a.Key))...)
		if seen.Has(a.Key) {
			errs = append(errs, field.Duplicate(key, a.Key))
		}
		seen.Insert(a.Key)
		if len(a.ValueExpression) > maxAnnotationExpression {
			errs = append(errs, field.TooLong(value, "", maxAnnotationExpression))
			continue
		}
		errs = append(errs, checker.Check(&validating.AuditAnnotationCondition{Key: a.Key,
			ValueExpression: a.ValueExpression}, value)...)
	}
	return errs
}

// ValidateStatusUpdate returns what is wrong with a new status.
func ValidateStatusUpdate(p, _ *policy) field.ErrorList {
	path := field.NewPath("status")
	errs := metavalidation.ValidateConditions(p.Status.Conditions, path.Child("conditions"))
	if p.Status.TypeChecking == nil {
		return errs
	}
	for i, w := range p.Status.TypeChecking.ExpressionWarnings {
		at := path.Child("typeChecking", "expressionWarnings").Index(i)
		errs = append(errs, fieldcheck.Required(w.Warning, at.Child("warning"), fieldcheck.NotEmpty)...)
		errs = append(errs, fieldcheck.Required(strings.TrimSpace(w.FieldRef), at.Child("fieldRef"), isPath)...)
	}
	return errs
}

func isPath(text string) []string {
	if err := jsonpath.New("spec").Parse("{" + text + "}"); err != nil {
		return []string{fmt.Sprintf("must be a JSONPath: %v", err)}
	}
	return nil
}
