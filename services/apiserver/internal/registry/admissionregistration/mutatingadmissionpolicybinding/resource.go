// Package mutatingadmissionpolicybinding is the resource MutatingAdmissionPolicyBinding of group
// admissionregistration.k8s.io: what puts a MutatingAdmissionPolicy in force, for what, and with which parameters.
//
//keelson:decision
package mutatingadmissionpolicybinding

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/registry/admissionregistration/match"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/paramrights"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

type binding = admissionregistrationv1.MutatingAdmissionPolicyBinding

// Resource is the MutatingAdmissionPolicyBinding.
var Resource = resource.Resource[*binding]{
	Group:         admissionregistrationv1.GroupName,
	Name:          "mutatingadmissionpolicybindings",
	Singular:      "mutatingadmissionpolicybinding",
	Categories:    []string{"api-extensions"},
	ClusterScoped: true,
	New:           func() *binding { return &binding{} },
	NewList:       func() runtime.Object { return &admissionregistrationv1.MutatingAdmissionPolicyBindingList{} },
	Default:       Default,
	Spec: resource.PartOf(func(b *binding) *admissionregistrationv1.MutatingAdmissionPolicyBindingSpec {
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

// Entry is the MutatingAdmissionPolicyBinding, whose writers may read its parameters.
func Entry(rights paramrights.Rights) rest.Entry {
	r := rest.Serve(Resource)
	r.Wrap = rest.AskOnWrite(paramrights.AboutRef(rights, rights.Mutating, func(b *binding) paramrights.Ref {
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
	errs = append(errs, match.NoDeletes(spec.MatchResources, path.Child("matchResources"))...)
	return append(errs, match.Resources(spec.MatchResources, path.Child("matchResources"))...)
}
