// Package endpointslice is the resource EndpointSlice of group discovery.k8s.io: a part of the addresses behind a
// Service.
//
//keelson:decision
package endpointslice

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// shownItems is how many ports and addresses a row lists before it only counts them.
const shownItems = 3

var help = discoveryv1.EndpointSlice{}.SwaggerDoc()

// Resource is the EndpointSlice.
var Resource = resource.Resource[*discoveryv1.EndpointSlice]{
	Group:    discoveryv1.GroupName,
	Name:     "endpointslices",
	Singular: "endpointslice",
	New:      func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} },
	NewList:  func() runtime.Object { return &discoveryv1.EndpointSliceList{} },
	Default:  Default,
	Strategy: resource.Strategy[*discoveryv1.EndpointSlice]{
		PrepareForCreate: prepareForCreate,
		PrepareForUpdate: prepareForUpdate,
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*discoveryv1.EndpointSlice](),
		resource.Column("AddressType", "string", help["addressType"],
			func(s *discoveryv1.EndpointSlice) any { return string(s.AddressType) }),
		resource.Column("Ports", "string", help["ports"],
			func(s *discoveryv1.EndpointSlice) any { return table.First(shownItems, ports(s), table.Unset) }),
		resource.Column("Endpoints", "string", help["endpoints"],
			func(s *discoveryv1.EndpointSlice) any { return table.First(shownItems, addresses(s), table.Unset) }),
		resource.AgeColumn[*discoveryv1.EndpointSlice](),
	),
}

// Default fills in what ports leave out.
func Default(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		defaults.SetPtr(&s.Ports[i].Name, "")
		defaults.SetPtr(&s.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func prepareForCreate(s *discoveryv1.EndpointSlice) {
	s.Generation = 1
	dropTopology(s)
}

// prepareForUpdate counts changes of what the slice says: there is no spec, and the labels say what it belongs to.
func prepareForUpdate(s, old *discoveryv1.EndpointSlice) {
	dropTopology(s)
	changed := s.AddressType != old.AddressType || !equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) ||
		!equality.Semantic.DeepEqual(s.Ports, old.Ports) || !equality.Semantic.DeepEqual(s.Labels, old.Labels)
	resource.RaiseGeneration(s, old, changed)
}

// dropTopology leaves out the field of an earlier version, which v1 does not write.
func dropTopology(s *discoveryv1.EndpointSlice) {
	for i := range s.Endpoints {
		s.Endpoints[i].DeprecatedTopology = nil
	}
}

func ports(s *discoveryv1.EndpointSlice) []string {
	shown := make([]string, 0, len(s.Ports))
	for _, port := range s.Ports {
		switch {
		case port.Port != nil:
			shown = append(shown, strconv.Itoa(int(*port.Port)))
		case ptr.Deref(port.Name, "") != "":
			shown = append(shown, *port.Name)
		default:
			shown = append(shown, "*")
		}
	}
	return shown
}

func addresses(s *discoveryv1.EndpointSlice) []string {
	var shown []string
	for _, endpoint := range s.Endpoints {
		shown = append(shown, endpoint.Addresses...)
	}
	return shown
}
