// Package validatingadmissionpolicy is the resource ValidatingAdmissionPolicy of group admissionregistration.k8s.io:
// checks of requests by expressions, which bindings put in force.
package validatingadmissionpolicy

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/match"
	"keelson.dev/services/apiserver/internal/registry/admissionregistration/paramrights"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

type policy = admissionregistrationv1.ValidatingAdmissionPolicy

// Resource is the ValidatingAdmissionPolicy with its /status.
var Resource = resource.Resource[*policy]{
	Group:         admissionregistrationv1.GroupName,
	Name:          "validatingadmissionpolicies",
	Singular:      "validatingadmissionpolicy",
	Categories:    []string{"api-extensions"},
	ClusterScoped: true,
	New:           func() *policy { return &policy{} },
	NewList:       func() runtime.Object { return &admissionregistrationv1.ValidatingAdmissionPolicyList{} },
	Default:       Default,
	Spec: resource.PartOf(func(p *policy) *admissionregistrationv1.ValidatingAdmissionPolicySpec {
		return &p.Spec
	}),
	Status: resource.PartOf(func(p *policy) *admissionregistrationv1.ValidatingAdmissionPolicyStatus {
		return &p.Status
	}),
	Strategy: resource.Strategy[*policy]{
		Validate: Validate, ValidateUpdate: ValidateUpdate, RequireResourceVersion: true,
	},
	StatusStrategy: resource.Strategy[*policy]{ValidateUpdate: ValidateStatusUpdate, RequireResourceVersion: true},
	Columns: resource.NewColumns(
		resource.NameColumn[*policy](),
		resource.Column(
			"Validations",
			"integer",
			"How many validations there are",
			func(p *policy) any { return int64(len(p.Spec.Validations)) },
		),
		resource.Column("ParamKind", "string", "The kind of the objects from which the policy has its parameters",
			func(p *policy) any { return match.ParamKindCell(p.Spec.ParamKind) }),
		resource.AgeColumn[*policy](),
	),
}

// Entry is the ValidatingAdmissionPolicy, whose writers may read its parameters.
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
	match.Default(p.Spec.MatchConstraints)
}
