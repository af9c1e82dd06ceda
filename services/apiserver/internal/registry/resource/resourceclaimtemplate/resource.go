// Package resourceclaimtemplate is the resource ResourceClaimTemplate of group resource.k8s.io: of which each Pod that
// names it gets a claim of its own.
package resourceclaimtemplate

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/services/apiserver/internal/registry/resource/device"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

type template = resourcev1.ResourceClaimTemplate

// Resource is the ResourceClaimTemplate.
var Resource = resource.Resource[*template]{
	Group:    resourcev1.GroupName,
	Name:     "resourceclaimtemplates",
	Singular: "resourceclaimtemplate",
	New:      func() *template { return &template{} },
	NewList:  func() runtime.Object { return &resourcev1.ResourceClaimTemplateList{} },
	Default:  func(t *template) { device.Default(&t.Spec.Spec.Devices) },
	Strategy: resource.Strategy[*template]{
		PrepareForCreate: func(t *template) { device.DropUnserved(&t.Spec.Spec.Devices) },
		PrepareForUpdate: func(t, _ *template) { device.DropUnserved(&t.Spec.Spec.Devices) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	Columns: resource.NewColumns(resource.NameColumn[*template](), resource.AgeColumn[*template]()),
}

// Entry is the ResourceClaimTemplate of which one that asks as an administrator is for namespaces that allow it.
func Entry(namespaces device.Namespaces) rest.Entry {
	return rest.ServeWrapped(Resource, rest.AskOnCreate(func(ctx context.Context, t, _ *template) field.ErrorList {
		return namespaces.AllowAdmin(ctx, request.NamespaceValue(ctx), device.AsksAsAdmin(&t.Spec.Spec, claimPath))
	}))
}
