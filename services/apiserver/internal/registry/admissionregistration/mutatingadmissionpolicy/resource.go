// Package mutatingadmissionpolicy is the resource MutatingAdmissionPolicy of group admissionregistration.k8s.io:
// changes of requests by expressions, which bindings put in force.
//
//keelson:decision
package mutatingadmissionpolicy

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/match"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/paramrights"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

type policy = admissionregistrationv1.MutatingAdmissionPolicy

// Resource is the MutatingAdmissionPolicy.
var Resource = resource.Resource[*policy]{
	Group:         admissionregistrationv1.GroupName,
	Name:          "mutatingadmissionpolicies",
	Singular:      "mutatingadmissionpolicy",
	Categories:    []string{"api-extensions"},
	ClusterScoped: true,
	New:           func() *policy { return &policy{} },
	NewList:       func() runtime.Object { return &admissionregistrationv1.MutatingAdmissionPolicyList{} },
	Default:       Default,
	Spec: resource.PartOf(func(p *policy) *admissionregistrationv1.MutatingAdmissionPolicySpec {
		return &p.Spec
	}),
	Strategy: resource.Strategy[*policy]{
		Validate: Validate, ValidateUpdate: ValidateUpdate, RequireResourceVersion: true,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*policy](),
		resource.Column(
			"Mutations",
			"integer",
			"How many mutations there are",
			func(p *policy) any { return int64(len(p.Spec.Mutations)) },
		),
		resource.Column("ParamKind", "string", "The kind of the objects from which the policy has its parameters",
			func(p *policy) any { return match.ParamKindCell(p.Spec.ParamKind) }),
		resource.AgeColumn[*policy](),
	),
}

// Entry is the MutatingAdmissionPolicy, whose writers may read its parameters.
func Entry(rights paramrights.Rights) rest.Entry {
	r := rest.Serve(Resource)
	r.Wrap = rest.AskOnWrite(paramrights.AboutKind(rights, func(p *policy) *admissionregistrationv1.ParamKind {
		return p.Spec.ParamKind
	}))
	return r
}

// Default makes a policy that fails refuse, and fills in what it is about.
func Default(p *policy) {
	defaults.SetPtr(&p.Spec.FailurePolicy, admissionregistrationv1.Fail)
	defaults.Set(&p.Spec.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	match.Default(p.Spec.MatchConstraints)
}
