package downward

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resource returns the amount that a resourceFieldRef names, divided by its divisor and rounded up. A container
// that the selector names is looked up in the Pod; otherwise own is used. A cpu, memory or ephemeral-storage limit
// that the container does not have is the node's allocatable amount.
func (v View) Resource(own *corev1.Container, ref *corev1.ResourceFieldSelector,
	allocatable corev1.ResourceList) (string, error) {
	container := own
	if ref.ContainerName != "" {
		container = v.container(ref.ContainerName)
	}
	if container == nil {
		return "", fmt.Errorf("container %s not found", ref.ContainerName)
	}
	side, name, ok := strings.Cut(ref.Resource, ".")
	if !ok || (side != "limits" && side != "requests") || !exposable(corev1.ResourceName(name)) {
		return "", fmt.Errorf("unsupported container resource : %v", ref.Resource)
	}
	amount := v.amount(container, side, corev1.ResourceName(name), allocatable)
	return strconv.FormatInt(divide(corev1.ResourceName(name), amount, ref.Divisor), 10), nil
}

// amount returns the container's amount, or else its Pod's as a whole, or else the node's.
func (v View) amount(container *corev1.Container, side string, name corev1.ResourceName,
	allocatable corev1.ResourceList) resource.Quantity {
	if side == "requests" {
		return container.Resources.Requests[name]
	}
	if limit := container.Resources.Limits[name]; !limit.IsZero() {
		return limit
	}
	if whole := v.Pod.Spec.Resources; whole != nil {
		if limit := whole.Limits[name]; !limit.IsZero() {
			return limit
		}
	}
	if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		return resource.Quantity{}
	}
	return allocatable[name]
}

func (v View) container(name string) *corev1.Container {
	for _, list := range [][]corev1.Container{v.Pod.Spec.Containers, v.Pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

func exposable(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// divide computes in thousandths for cpu and in whole units for the rest. A zero divisor means 1.
func divide(name corev1.ResourceName, amount, divisor resource.Quantity) int64 {
	whole, part := amount.Value(), divisor.Value()
	if name == corev1.ResourceCPU {
		whole, part = amount.MilliValue(), divisor.MilliValue()
		if part == 0 {
			part = 1000
		}
	}
	if part == 0 {
		part = 1
	}
	quotient := whole / part
	if whole%part > 0 {
		quotient++
	}
	return quotient
}
