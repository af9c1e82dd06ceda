package columns

import (
	"encoding/binary"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Usage is what a Pod takes of its node. Equal usages of one State are one pointer, so none is ever changed.
type Usage struct {
	// Basic is indexed by Resource; Pods is 1.
	Basic [basic]int64
	// Scored is Basic of CPU and Memory with a default for each container that asks for none.
	Scored [2]int64
	// Extended is sorted by name and holds no zeros.
	Extended []Amount
	// Ports are the host ports, sorted.
	Ports []Port
	key   string
}

// Amount is a quantity of an extended resource.
type Amount struct {
	Resource Resource
	Name     corev1.ResourceName
	Value    int64
}

// Key is equal for equal usages.
func (u *Usage) Key() string { return u.key }

// usages holds one Usage for each key. Past maxUsages it starts afresh, which only costs memory: pointers that are
// still in use stay right.
type usages map[string]*Usage

const maxUsages = 50_000

// A container that asks for no CPU or memory is scored as if it asked for this much.
var scoredDefaults = corev1.ResourceList{
	corev1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(200<<20, resource.BinarySI),
}

// Usage returns what the Pod takes: the sums that the API defines over containers, init containers, sidecars and
// overhead, and its host ports.
func (s *State) Usage(p *corev1.Pod) *Usage {
	requests := requested(p)
	u := &Usage{}
	u.Basic[Pods] = 1
	for name, quantity := range requests {
		switch name {
		case corev1.ResourceCPU:
			u.Basic[CPU] = quantity.MilliValue()
		case corev1.ResourceMemory:
			u.Basic[Memory] = quantity.Value()
		case corev1.ResourceEphemeralStorage:
			u.Basic[Ephemeral] = quantity.Value()
		default:
			if value := quantity.Value(); value > 0 {
				u.Extended = append(u.Extended, Amount{Resource: s.resource(name), Name: name, Value: value})
			}
		}
	}
	slices.SortFunc(u.Extended, func(a, b Amount) int { return strings.Compare(string(a.Name), string(b.Name)) })
	u.Scored = scored(p, u)
	u.Ports = hostPorts(p)
	return s.intern(u)
}

// requested returns the sums that the API defines. For the usual Pod, one container and nothing else, they are the
// requests of that container.
func requested(p *corev1.Pod) corev1.ResourceList {
	if len(p.Spec.Containers) == 1 && len(p.Spec.InitContainers) == 0 && len(p.Spec.Overhead) == 0 &&
		p.Spec.Resources == nil && len(p.Status.ContainerStatuses) == 0 && p.Status.Resources == nil &&
		!resourcehelper.IsPodResizeInfeasible(p) {
		return p.Spec.Containers[0].Resources.Requests
	}
	return resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true})
}

// scored returns CPU and memory with the default for each container that asks for none.
func scored(p *corev1.Pod, u *Usage) [2]int64 {
	if complete(p) {
		return [2]int64{u.Basic[CPU], u.Basic[Memory]}
	}
	requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
		NonMissingContainerRequests:                    scoredDefaults,
	})
	return [2]int64{requests.Cpu().MilliValue(), requests.Memory().Value()}
}

// complete reports whether all lists of containers, in the spec and in the status, name CPU and memory.
func complete(p *corev1.Pod) bool {
	lacks := func(list corev1.ResourceList) bool {
		_, cpu := list[corev1.ResourceCPU]
		_, memory := list[corev1.ResourceMemory]
		return !cpu || !memory
	}
	lackingSpec := func(c corev1.Container) bool { return lacks(c.Resources.Requests) }
	lackingStatus := func(s corev1.ContainerStatus) bool {
		return s.AllocatedResources != nil && lacks(s.AllocatedResources) ||
			s.Resources != nil && s.Resources.Requests != nil && lacks(s.Resources.Requests)
	}
	return !resourcehelper.IsPodResizeInfeasible(p) &&
		!slices.ContainsFunc(p.Spec.InitContainers, lackingSpec) &&
		!slices.ContainsFunc(p.Spec.Containers, lackingSpec) &&
		!slices.ContainsFunc(p.Status.InitContainerStatuses, lackingStatus) &&
		!slices.ContainsFunc(p.Status.ContainerStatuses, lackingStatus)
}

func (s *State) intern(u *Usage) *Usage {
	var buffer [96]byte
	key := buffer[:0]
	for _, v := range u.Basic {
		key = binary.AppendVarint(key, v)
	}
	for _, v := range u.Scored {
		key = binary.AppendVarint(key, v)
	}
	for _, a := range u.Extended {
		key = binary.AppendVarint(key, int64(a.Resource))
		key = binary.AppendVarint(key, a.Value)
	}
	key = append(key, 0xff)
	for _, p := range u.Ports {
		key = append(key, p.IP...)
		key = append(key, '/')
		key = append(key, p.Protocol...)
		key = binary.AppendVarint(key, int64(p.Number))
	}
	if known, ok := s.usages[string(key)]; ok {
		return known
	}
	if len(s.usages) >= maxUsages {
		s.usages = usages{}
	}
	u.key = string(key)
	s.usages[u.key] = u
	return u
}
