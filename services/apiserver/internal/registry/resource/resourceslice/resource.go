// Package resourceslice is the resource ResourceSlice of group resource.k8s.io: what a driver says of its devices, on
// one node or on several.
//
//keelson:decision
package resourceslice

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

type slice = resourcev1.ResourceSlice

var help = resourcev1.ResourceSliceSpec{}.SwaggerDoc()

// Resource is the ResourceSlice.
var Resource = resource.Resource[*slice]{
	Group:         resourcev1.GroupName,
	Name:          "resourceslices",
	Singular:      "resourceslice",
	ClusterScoped: true,
	New:           func() *slice { return &slice{} },
	NewList:       func() runtime.Object { return &resourcev1.ResourceSliceList{} },
	Spec:          resource.PartOf(func(s *slice) *resourcev1.ResourceSliceSpec { return &s.Spec }),
	Strategy: resource.Strategy[*slice]{
		PrepareAt:        prepare,
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
		Warnings:         warnings,
		WarningsOnUpdate: func(s, _ *slice) []string { return warnings(s) },
	},
	Fields: []resource.Field[*slice]{
		{Label: resourcev1.ResourceSliceSelectorNodeName, Value: nodeName, Indexed: true},
		{Label: resourcev1.ResourceSliceSelectorDriver, Value: func(s *slice) string { return s.Spec.Driver }},
		{Label: resourcev1.ResourceSliceSelectorPoolName, Value: func(s *slice) string { return s.Spec.Pool.Name }},
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*slice](),
		resource.Column("Node", "string", help["nodeName"], func(s *slice) any {
			if s.Spec.NodeName == nil {
				return table.Unset
			}
			return *s.Spec.NodeName
		}),
		resource.Column("Driver", "string", help["driver"], func(s *slice) any { return s.Spec.Driver }),
		resource.Column("Pool", "string", resourcev1.ResourcePool{}.SwaggerDoc()["name"],
			func(s *slice) any { return s.Spec.Pool.Name }),
		resource.AgeColumn[*slice](),
	),
}

func nodeName(s *slice) string { return ptr.Deref(s.Spec.NodeName, "") }

// warnings tell of names of drivers that other parts of a cluster may take for others.
func warnings(s *slice) []string {
	if driver := s.Spec.Driver; driver != strings.ToLower(driver) {
		return []string{fmt.Sprintf("spec.driver: driver names should be lowercase; %q contains uppercase characters",
			driver)}
	}
	return nil
}
