// Package validatingadmissionpolicybinding is the resource ValidatingAdmissionPolicyBinding of group
// admissionregistration.k8s.io: what puts a ValidatingAdmissionPolicy in force, for what, and with which parameters.
//
//keelson:decision
package validatingadmissionpolicybinding

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/match"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/paramrights"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

type binding = admissionregistrationv1.ValidatingAdmissionPolicyBinding

// Resource is the ValidatingAdmissionPolicyBinding.
var Resource = resource.Resource[*binding]{
	Group:         admissionregistrationv1.GroupName,
	Name:          "validatingadmissionpolicybindings",
	Singular:      "validatingadmissionpolicybinding",
	Categories:    []string{"api-extensions"},
	ClusterScoped: true,
	New:           func() *binding { return &binding{} },
	NewList:       func() runtime.Object { return &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{} },
	Default:       Default,
	Spec: resource.PartOf(func(b *binding) *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec {
		return &b.Spec
	}),
	Strategy: resource.Strategy[*binding]{Validate: Validate, RequireResourceVersion: true},
	Columns: resource.NewColumns(
		resource.NameColumn[*binding](),
		resource.Column(
			"PolicyName",
			"string",
			"The policy that is put in force",
			func(b *binding) any { return b.Spec.PolicyName },
		),
		resource.Column("ParamRef", "string", "The object from which the policy has its parameters",
			func(b *binding) any { return match.ParamRefCell(b.Spec.ParamRef) }),
		resource.AgeColumn[*binding](),
	),
}

// Entry is the ValidatingAdmissionPolicyBinding, whose writers may read its parameters.
func Entry(rights paramrights.Rights) rest.Entry {
	r := rest.Serve(Resource)
	r.Wrap = rest.AskOnWrite(paramrights.AboutRef(rights, rights.Validating, func(b *binding) paramrights.Ref {
		return paramrights.Ref{Policy: b.Spec.PolicyName, ParamRef: b.Spec.ParamRef}
	}))
	return r
}

// Default fills in what the binding is about.
func Default(b *binding) { match.Default(b.Spec.MatchResources) }

// Validate returns what is wrong with a defaulted binding.
func Validate(b *binding) field.ErrorList {
	spec, path := &b.Spec, field.NewPath("spec")
	errs := match.PolicyName(spec.PolicyName, path.Child("policyName"))
	errs = append(errs, match.ParamRef(spec.ParamRef, path.Child("paramRef"))...)
	errs = append(errs, match.Resources(spec.MatchResources, path.Child("matchResources"))...)
	return append(errs, validateActions(spec.ValidationActions, path.Child("validationActions"))...)
}

// validateActions wants something to be done about what a check fails, and not twice.
func validateActions(actions []admissionregistrationv1.ValidationAction, path *field.Path) field.ErrorList {
	if len(actions) == 0 {
		return field.ErrorList{field.Required(path, "at least one validation action is required")}
	}
	var errs field.ErrorList
	seen := sets.New[admissionregistrationv1.ValidationAction]()
	for i, action := range actions {
		errs = append(errs, fieldcheck.OneOf(action, path.Index(i), admissionregistrationv1.Audit,
			admissionregistrationv1.Deny, admissionregistrationv1.Warn)...)
		if seen.Has(action) {
			errs = append(errs, field.Duplicate(path.Index(i), action))
		}
		seen.Insert(action)
	}
	if seen.HasAll(admissionregistrationv1.Deny, admissionregistrationv1.Warn) {
		errs = append(errs, field.Invalid(path, actions,
			"must not contain both Deny and Warn: who is refused reads the reason already"))
	}
	return errs
}
