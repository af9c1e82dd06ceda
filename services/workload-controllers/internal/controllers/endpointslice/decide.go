package endpointslice

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"keelson.dev/services/workload-controllers/internal/endpointfeed"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Service *corev1.Service
	// Pods are those that the Service selects.
	Pods []*corev1.Pod
	// Nodes are those of the Pods, by name, as far as they exist.
	Nodes map[string]*corev1.Node
	// Slices are those that this controller keeps for the Service.
	Slices []*discoveryv1.EndpointSlice
	// MaxEndpoints is how many endpoints a slice may have.
	MaxEndpoints int32
	// Changed is when the first change took place that the slices do not show yet; zero where that is not known.
	Changed time.Time
}

// own returns the slices as the library may have them: it sorts ports and addresses in place.
func own(cached []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	all := make([]*discoveryv1.EndpointSlice, 0, len(cached))
	for _, slice := range cached {
		if slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return len(e.Addresses) > 1 }) {
			all = append(all, slice.DeepCopy())
			continue
		}
		shallow := *slice
		shallow.Ports = slices.Clone(slice.Ports)
		all = append(all, &shallow)
	}
	return all
}

// condition makes the writes fail where the slices are no longer what the decision saw: the library names what it
// deletes, and it makes one slice out of another that is not needed any more by its name alone.
func condition(p *endpointfeed.Plan, seen []*discoveryv1.EndpointSlice) {
	known := map[string]*discoveryv1.EndpointSlice{}
	for _, slice := range seen {
		known[slice.Name] = slice
	}
	for _, slice := range p.Update {
		if before := known[slice.Name]; before != nil {
			slice.UID, slice.ResourceVersion = before.UID, before.ResourceVersion
		}
	}
	for i, slice := range p.Delete {
		if before := known[slice.Name]; before != nil {
			p.Delete[i] = before
		}
	}
}
