package columns

import (
	corev1 "k8s.io/api/core/v1"
)

// Resource is the index of a resource: one of the four that every node has, or an extended one.
type Resource int

// The resources that every node has.
const (
	CPU       Resource = iota // in milli-CPU
	Memory                    // in bytes
	Ephemeral                 // in bytes
	Pods                      // number of Pods
	basic
)

// BasicNames are the API's names of the resources that every node has, by Resource.
var BasicNames = [basic]corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods,
}

// Room is what a node offers and what its Pods take of the resources that every node has.
type Room struct {
	// Allocatable and Used are indexed by Resource.
	Allocatable, Used [basic]int64
	// Scored is Used of CPU and Memory with a default for each container that asks for none; only scores look at it.
	Scored [2]int64
}

// extended is the column of one extended resource.
type extended struct {
	name        corev1.ResourceName
	allocatable []int64
	used        []int64
}

func (e *extended) grow(n int) {
	for len(e.used) < n {
		e.allocatable = append(e.allocatable, 0)
		e.used = append(e.used, 0)
	}
}

// resource returns the index of an extended resource and makes its column when it is new.
func (s *State) resource(name corev1.ResourceName) Resource {
	if r, ok := s.resources[name]; ok {
		return r
	}
	r := basic + Resource(len(s.extended))
	column := extended{name: name}
	column.grow(len(s.names))
	s.extended = append(s.extended, column)
	s.resources[name] = r
	return r
}

// setAllocatable takes over what the node offers and reports whether anything grew or shrank.
func (s *State) setAllocatable(slot Slot, list corev1.ResourceList) (grown, shrunk bool) {
	set := func(at *int64, value int64) {
		grown = grown || value > *at
		shrunk = shrunk || value < *at
		*at = value
	}
	var now [basic]int64
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			now[CPU] = quantity.MilliValue()
		case corev1.ResourceMemory:
			now[Memory] = quantity.Value()
		case corev1.ResourceEphemeralStorage:
			now[Ephemeral] = quantity.Value()
		case corev1.ResourcePods:
			now[Pods] = quantity.Value()
		default:
			r := s.resource(name)
			set(&s.extended[r-basic].allocatable[slot], quantity.Value())
		}
	}
	for r, value := range now {
		set(&s.room[slot].Allocatable[r], value)
	}
	for i := range s.extended {
		if _, ok := list[s.extended[i].name]; !ok {
			set(&s.extended[i].allocatable[slot], 0)
		}
	}
	return grown, shrunk
}

// take adds (sign 1) or gives back (sign -1) what a Pod takes.
func (s *State) take(slot Slot, u *Usage, sign int64) {
	s.room[slot].take(u, sign)
	for _, a := range u.Extended {
		s.extended[a.Resource-basic].used[slot] += sign * a.Value
	}
	if len(u.Ports) > 0 {
		s.hold(slot, u.Ports, sign > 0)
	}
}

func (r *Room) take(u *Usage, sign int64) {
	for i, amount := range u.Basic {
		r.Used[i] += sign * amount
	}
	r.Scored[CPU] += sign * u.Scored[CPU]
	r.Scored[Memory] += sign * u.Scored[Memory]
}
