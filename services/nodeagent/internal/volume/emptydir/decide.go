package emptydir

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"keelson.dev/services/nodeagent/internal/qos"
)

// memorySize returns the maximum size of a volume in memory: the volume's limit, but no more than the Pod may use
// of the node's memory, since its contents count as the Pod's.
func memorySize(pod *corev1.Pod, source *corev1.EmptyDirVolumeSource, allocatable corev1.ResourceList) int64 {
	size := allocatable.Memory().Value()
	for _, limit := range []int64{qos.PodMemoryLimit(pod), quantity(source.SizeLimit)} {
		if limit > 0 && (size == 0 || limit < size) {
			size = limit
		}
	}
	return size
}

func quantity(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}

// hugePages returns the page size of a medium HugePages-<size>, or for plain HugePages the only size that the Pod
// requests, and how much the volume may hold: the Pod's limit. Without a size the kernel would not bound it.
func hugePages(pod *corev1.Pod, medium corev1.StorageMedium) (pageSize, size int64, err error) {
	limits := pageLimits(pod)
	if text, ok := strings.CutPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix)); ok {
		page, err := resource.ParseQuantity(text)
		if err != nil {
			return 0, 0, fmt.Errorf("medium %q: page size %q: %w", medium, text, err)
		}
		if limits[page.Value()] == 0 {
			return 0, 0, fmt.Errorf("medium %s needs a container that asks for pages of this size", medium)
		}
		return page.Value(), limits[page.Value()], nil
	}
	if medium != corev1.StorageMediumHugePages {
		return 0, 0, fmt.Errorf("unknown storage medium %q: use \"\", Memory, HugePages or HugePages-<size>", medium)
	}
	if len(limits) == 1 {
		for pageSize, size := range limits {
			return pageSize, size, nil
		}
	}
	return 0, 0, fmt.Errorf("medium HugePages needs containers that ask for pages of exactly one size, found %d sizes",
		len(limits))
}

// pageLimits returns the limits of the Pod as a whole, by page size.
func pageLimits(pod *corev1.Pod) map[int64]int64 {
	limits := map[int64]int64{}
	for name, limit := range resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{ExcludeOverhead: true}) {
		text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
		if !ok || limit.Sign() <= 0 {
			continue
		}
		if size, err := resource.ParseQuantity(text); err == nil {
			limits[size.Value()] += limit.Value()
		}
	}
	return limits
}
