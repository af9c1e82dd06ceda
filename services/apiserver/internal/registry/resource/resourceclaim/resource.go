// Package resourceclaim is the resource ResourceClaim of group resource.k8s.io: the wish for devices, which of them it
// got, and for whom they are.
package resourceclaim

import (
	"context"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/resource/device"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

type claim = resourcev1.ResourceClaim

// Resource is the ResourceClaim with its /status.
var Resource = resource.Resource[*claim]{
	Group:        resourcev1.GroupName,
	Name:         "resourceclaims",
	Singular:     "resourceclaim",
	New:          func() *claim { return &claim{} },
	NewList:      func() runtime.Object { return &resourcev1.ResourceClaimList{} },
	NoGeneration: true,
	Default:      Default,
	Spec:         resource.PartOf(func(c *claim) *resourcev1.ResourceClaimSpec { return &c.Spec }),
	Status:       resource.PartOf(func(c *claim) *resourcev1.ResourceClaimStatus { return &c.Status }),
	Strategy: resource.Strategy[*claim]{
		PrepareForCreate: func(c *claim) { device.DropUnserved(&c.Spec.Devices) },
		PrepareForUpdate: func(c, _ *claim) { device.DropUnserved(&c.Spec.Devices) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	StatusStrategy: resource.Strategy[*claim]{PrepareForUpdate: prepareStatus, ValidateUpdate: ValidateStatusUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*claim](),
		resource.Column("State", "string", "Whether the claim has devices, and whether they are for somebody.",
			func(c *claim) any { return state(c) }),
		resource.AgeColumn[*claim](),
	),
}

// Config is what a claim needs beyond its store.
type Config struct {
	// Namespaces say where users may ask as administrators.
	Namespaces device.Namespaces
	// Authorizer says who may write which part of a status.
	Authorizer authorizer.Authorizer
}

// Entry is the ResourceClaim behind what its writers may.
func Entry(c Config) rest.Entry {
	r := rest.Serve(Resource)
	r.Wrap = rest.AskOnCreate(func(ctx context.Context, obj, _ *claim) field.ErrorList {
		return c.Namespaces.AllowAdmin(ctx, request.NamespaceValue(ctx), device.AsksAsAdmin(&obj.Spec, specPath))
	})
	r.Subresources = map[string]func(*rest.Storage) genericrest.Storage{
		"resourceclaims/status": rest.AskOnStatus(c.askOnStatus),
	}
	return r
}

// Default fills in what is left out.
func Default(c *claim) {
	device.Default(&c.Spec.Devices)
	if allocation := c.Status.Allocation; allocation != nil {
		for i := range allocation.Devices.Results {
			device.DefaultTolerations(allocation.Devices.Results[i].Tolerations)
		}
	}
}

// state is what kubectl shows of a claim.
func state(c *claim) string {
	var words []string
	if c.DeletionTimestamp != nil {
		words = append(words, "deleted")
	}
	switch allocated := c.Status.Allocation != nil; {
	case allocated && len(c.Status.ReservedFor) > 0:
		words = append(words, "allocated", "reserved")
	case allocated:
		words = append(words, "allocated")
	case c.DeletionTimestamp == nil:
		words = append(words, "pending")
	}
	return strings.Join(words, ",")
}
