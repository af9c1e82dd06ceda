package mutatingadmissionpolicy

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/expression"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/match"
)

// Validate returns what is wrong with a defaulted policy.
func Validate(p *policy) field.ErrorList { return ValidateUpdate(p, &policy{}) }

// ValidateUpdate returns what is wrong with p as the successor of old.
func ValidateUpdate(p, old *policy) field.ErrorList {
	spec, path := &p.Spec, field.NewPath("spec")
	errs := fieldcheck.RequiredOneOf(ptr.Deref(spec.FailurePolicy, ""), path.Child("failurePolicy"),
		admissionregistrationv1.Fail, admissionregistrationv1.Ignore)
	errs = append(errs, fieldcheck.RequiredOneOf(spec.ReinvocationPolicy, path.Child("reinvocationPolicy"),
		admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)...)
	errs = append(errs, match.ParamKind(spec.ParamKind, path.Child("paramKind"))...)
	errs = append(errs, match.Constraints(spec.MatchConstraints, path.Child("matchConstraints"))...)
	errs = append(errs, match.NoDeletes(spec.MatchConstraints, path.Child("matchConstraints"))...)
	checker := expression.NewChecker(spec.ParamKind != nil, texts(&old.Spec)...)
	errs = append(errs, checker.CheckConditions(spec.MatchConditions, path.Child("matchConditions"))...)
	errs = append(errs, checker.WithVariables(spec.Variables, path.Child("variables"))...)
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(path.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range spec.Mutations {
		errs = append(errs, validateOne(checker, &spec.Mutations[i], path.Child("mutations").Index(i))...)
	}
	return errs
}

// texts are all expressions of a policy.
func texts(spec *admissionregistrationv1.MutatingAdmissionPolicySpec) []string {
	all := expression.Texts(spec.MatchConditions)
	for _, v := range spec.Variables {
		all = append(all, v.Expression)
	}
	for _, m := range spec.Mutations {
		if m.ApplyConfiguration != nil {
			all = append(all, m.ApplyConfiguration.Expression)
		}
		if m.JSONPatch != nil {
			all = append(all, m.JSONPatch.Expression)
		}
	}
	return all
}

// validateOne wants a mutation to have what its type says, and nothing else.
func validateOne(checker *expression.Checker, m *admissionregistrationv1.Mutation, path *field.Path) field.ErrorList {
	const (
		patched = admissionregistrationv1.PatchTypeJSONPatch
		applied = admissionregistrationv1.PatchTypeApplyConfiguration
	)
	errs := fieldcheck.RequiredOneOf(m.PatchType, path.Child("patchType"), applied, patched)
	at := path.Child("applyConfiguration")
	switch {
	case m.PatchType == applied && m.ApplyConfiguration == nil:
		errs = append(errs, field.Required(at, "must be specified when patchType is ApplyConfiguration"))
	case m.PatchType == applied:
		errs = append(errs, checker.CheckMutation(
			&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, at.Child("expression"))...)
	case m.ApplyConfiguration != nil:
		errs = append(errs, field.Forbidden(at, "must be left out unless patchType is ApplyConfiguration"))
	}
	at = path.Child("jsonPatch")
	switch {
	case m.PatchType == patched && m.JSONPatch == nil:
		errs = append(errs, field.Required(at, "must be specified when patchType is JSONPatch"))
	case m.PatchType == patched:
		errs = append(errs, checker.CheckMutation(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression},
			at.Child("expression"))...)
	case m.JSONPatch != nil:
		errs = append(errs, field.Forbidden(at, "must be left out unless patchType is JSONPatch"))
	}
	return errs
}
