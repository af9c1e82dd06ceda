// Package sizes handles the CPU and memory that Pods and their containers ask for, as far as a resize can change
// it. It is pure.
//
//keelson:decision
package sizes

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Annotation is on a container instance from its creation on: the size that it was created with.
const Annotation = "nodeagent.keelson.dev/size"

// Resized are the resources that a resize may change.
var Resized = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Size is what a Pod asks for: as a whole, if it specifies that, and for each of its containers by name.
type Size struct {
	Pod        *corev1.ResourceRequirements           `json:"pod,omitempty"`
	Containers map[string]corev1.ResourceRequirements `json:"containers,omitempty"`
}

// Of returns the size in a Pod's spec.
func Of(pod *corev1.Pod) Size {
	size := Size{Pod: pod.Spec.Resources.DeepCopy(), Containers: map[string]corev1.ResourceRequirements{}}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			size.Containers[list[i].Name] = *list[i].Resources.DeepCopy()
		}
	}
	return size
}

// Reported returns the size that a Pod's node last reported; what the report lacks is taken from the spec.
func Reported(pod *corev1.Pod) Size {
	size, status := Of(pod), &pod.Status
	if size.Pod != nil && status.Resources != nil {
		size.Pod.Limits = resized(size.Pod.Limits, status.Resources.Limits)
		size.Pod.Requests = resized(size.Pod.Requests, status.Resources.Requests)
	}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			r, known := size.Containers[list[i].Name]
			if !known || list[i].Resources == nil {
				continue
			}
			r.Limits = resized(r.Limits, list[i].Resources.Limits)
			r.Requests = resized(r.Requests, list[i].AllocatedResources)
			size.Containers[list[i].Name] = r
		}
	}
	return size
}

// resized returns list, with the resources that a resize may change taken from another one.
func resized(list, from corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range list {
		if !slices.Contains(Resized, name) {
			out[name] = quantity
		}
	}
	for _, name := range Resized {
		if quantity, set := from[name]; set {
			out[name] = quantity
		}
	}
	return out
}

// Apply returns the Pod at this size. The Pod is not changed; a container that the size does not name is kept.
func (s Size) Apply(pod *corev1.Pod) *corev1.Pod {
	out := *pod
	out.Spec.Resources = s.Pod
	out.Spec.InitContainers = s.containers(pod.Spec.InitContainers)
	out.Spec.Containers = s.containers(pod.Spec.Containers)
	return &out
}

func (s Size) containers(list []corev1.Container) []corev1.Container {
	out := slices.Clone(list)
	for i := range out {
		if r, known := s.Containers[out[i].Name]; known {
			out[i].Resources = r
		}
	}
	return out
}

// Same reports whether two versions of a Pod have the same size.
func Same(a, b *corev1.Pod) bool {
	return sameWhole(a.Spec.Resources, b.Spec.Resources) &&
		sameContainers(a.Spec.InitContainers, b.Spec.InitContainers) &&
		sameContainers(a.Spec.Containers, b.Spec.Containers)
}

func sameWhole(a, b *corev1.ResourceRequirements) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameRequirements(a, b)
}

func sameContainers(a, b []corev1.Container) bool {
	return slices.EqualFunc(a, b,
		func(x, y corev1.Container) bool { return sameRequirements(&x.Resources, &y.Resources) })
}

func sameRequirements(a, b *corev1.ResourceRequirements) bool {
	return len(changed(a, b)) == 0
}

// SameMemory reports whether two versions of a container request and may use the same memory.
func SameMemory(a, b *corev1.Container) bool {
	return !slices.Contains(changed(&a.Resources, &b.Resources), corev1.ResourceMemory)
}

// changed returns the resources in which two requirements differ.
func changed(a, b *corev1.ResourceRequirements) []corev1.ResourceName {
	var out []corev1.ResourceName
	for _, name := range Resized {
		if !sameAmount(a.Requests, b.Requests, name) || !sameAmount(a.Limits, b.Limits, name) {
			out = append(out, name)
		}
	}
	return out
}

func sameAmount(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	x, inA := a[name]
	y, inB := b[name]
	return inA == inB && x.Cmp(y) == 0
}

// Max returns a size with room for both: the greater of requests and limits, and no limit if either has none.
func Max(a, b Size) Size {
	out := Size{Containers: map[string]corev1.ResourceRequirements{}}
	if a.Pod != nil && b.Pod != nil {
		whole := maxOf(*a.Pod, *b.Pod)
		out.Pod = &whole
	}
	for name, r := range b.Containers {
		if before, known := a.Containers[name]; known {
			r = maxOf(before, r)
		}
		out.Containers[name] = r
	}
	return out
}

func maxOf(a, b corev1.ResourceRequirements) corev1.ResourceRequirements {
	out := *b.DeepCopy()
	for name, quantity := range a.Requests {
		if other, set := b.Requests[name]; !set || quantity.Cmp(other) > 0 {
			if out.Requests == nil {
				out.Requests = corev1.ResourceList{}
			}
			out.Requests[name] = quantity
		}
	}
	for name, other := range b.Limits {
		quantity, set := a.Limits[name]
		if !set {
			delete(out.Limits, name)
		} else if quantity.Cmp(other) > 0 {
			out.Limits[name] = quantity
		}
	}
	return out
}

// Instance is the size of one instance of a container. The Pod's limit as a whole bounds an instance without a
// memory limit of its own.
type Instance struct {
	Resources corev1.ResourceRequirements  `json:"resources"`
	Pod       *corev1.ResourceRequirements `json:"pod,omitempty"`
}

// InstanceOf returns the desired size of an instance of the container.
func InstanceOf(pod *corev1.Pod, container *corev1.Container) Instance {
	return Instance{Resources: container.Resources, Pod: pod.Spec.Resources}
}

// Changed returns the resources in which an instance must change to have the wanted size.
func (i Instance) Changed(want Instance) []corev1.ResourceName {
	out := changed(&i.Resources, &want.Resources)
	if _, own := want.Resources.Limits[corev1.ResourceMemory]; !own && !slices.Contains(out, corev1.ResourceMemory) &&
		!sameAmount(wholeLimits(i.Pod), wholeLimits(want.Pod), corev1.ResourceMemory) {
		out = append(out, corev1.ResourceMemory)
	}
	return out
}

// MemoryLimit returns the memory in bytes that the instance may use; 0 means no limit.
func (i Instance) MemoryLimit() int64 {
	if own := i.Resources.Limits.Memory().Value(); own > 0 {
		return own
	}
	whole := wholeLimits(i.Pod)
	return whole.Memory().Value()
}

func wholeLimits(r *corev1.ResourceRequirements) corev1.ResourceList {
	if r == nil {
		return nil
	}
	return r.Limits
}

// Encode returns the size as text, for an annotation.
func (i Instance) Encode() (string, error) {
	text, err := json.Marshal(i)
	if err != nil {
		return "", fmt.Errorf("encoding the size of a container: %w", err)
	}
	return string(text), nil
}

// Decode reads what Encode wrote; ok is false for anything else.
func Decode(text string) (instance Instance, ok bool) {
	if text == "" || json.Unmarshal([]byte(text), &instance) != nil {
		return Instance{}, false
	}
	return instance, true
}
