package ingressclass

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func class(controller string, edits ...func(*networkingv1.IngressClassParametersReference)) *networkingv1.IngressClass {
	c := &networkingv1.IngressClass{Spec: networkingv1.IngressClassSpec{Controller: controller}}
	for _, edit := range edits {
		c.Spec.Parameters = &networkingv1.IngressClassParametersReference{APIGroup: ptr.To("example.com"), Kind: "Kind",
			Name: "name"}
		edit(c.Spec.Parameters)
	}
	Default(c)
	return c
}

func TestValidate(t *testing.T) {
	type parameters = networkingv1.IngressClassParametersReference
	const controller = "example.com/ingress"
	for _, row := range []struct {
		name  string
		class *networkingv1.IngressClass
		want  []string
	}{
		{"plain", class(controller), nil},
		{"no controller", class(""), []string{"spec.controller: Required value"}},
		{"no path", class("example.com"), []string{`spec.controller: Invalid value: "example.com"`}},
		{"longest", class("a.b/" + strings.Repeat("c", 246)), nil},
		{"too long", class("a.b/" + strings.Repeat("c", 247)), []string{"spec.controller: Too long"}},
		{"parameters", class(controller, func(*parameters) {}), nil},
		{"core group", class(controller, func(p *parameters) { p.APIGroup = nil }), nil},
		{"malformed parameters", class(controller, func(p *parameters) {
			p.APIGroup, p.Kind, p.Name = ptr.To("a b"), "", "a/b"
		}), []string{"spec.parameters.apiGroup: Invalid value", "spec.parameters.kind: Required value",
			"spec.parameters.name: Invalid value"}},
		{"unknown scope", class(controller, func(p *parameters) { p.Scope = ptr.To("Other") }),
			[]string{`spec.parameters.scope: Unsupported value: "Other"`}},
		{"of a namespace", class(controller, func(p *parameters) {
			p.Scope, p.Namespace = ptr.To("Namespace"), ptr.To("ns")
		}), nil},
		{"of no namespace", class(controller, func(p *parameters) { p.Scope = ptr.To("Namespace") }),
			[]string{"spec.parameters.namespace: Required value"}},
		{"of the cluster, in a namespace", class(controller, func(p *parameters) { p.Namespace = ptr.To("ns") }),
			[]string{"spec.parameters.namespace: Forbidden"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.class), row.want...) })
	}
	fieldtest.Check(t, ValidateUpdate(class("example.com/a"), class("example.com/b")),
		`spec.controller: Invalid value: "example.com/a": field is immutable`)
}

func TestDefault(t *testing.T) {
	c := class("a.b/c", func(*networkingv1.IngressClassParametersReference) {})
	if *c.Spec.Parameters.Scope != "Cluster" {
		t.Errorf("scope %s", *c.Spec.Parameters.Scope)
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
