package emptydir

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/services/nodeagent/internal/qos"
)

// memorySize returns how large a volume of memory may grow: what the volume says, but no more than the Pod may use of
// the node's memory, since its contents count as the Pod's.
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

// pageSize returns the page size of a medium HugePages-<size>, or for plain HugePages the one size that the Pod asks
// for.
func pageSize(pod *corev1.Pod, medium corev1.StorageMedium) (int64, error) {
	if text, ok := strings.CutPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix)); ok {
		size, err := resource.ParseQuantity(text)
		if err != nil {
			return 0, fmt.Errorf("medium %q: page size %q: %w", medium, text, err)
		}
		return size.Value(), nil
	}
	if medium != corev1.StorageMediumHugePages {
		return 0, fmt.Errorf("unknown storage medium %q: use \"\", Memory, HugePages or HugePages-<size>", medium)
	}
	sizes := pageLimits(pod)
	if len(sizes) != 1 {
		return 0, fmt.Errorf("medium HugePages needs containers that ask for pages of exactly one size, found %d sizes",
			len(sizes))
	}
	for size := range sizes {
		return size, nil
	}
	return 0, nil
}

func pageLimit(pod *corev1.Pod, pageSize int64) int64 { return pageLimits(pod)[pageSize] }

// pageLimits sums what the Pod's containers ask for, per page size.
func pageLimits(pod *corev1.Pod) map[int64]int64 {
	limits := map[int64]int64{}
	for i := range pod.Spec.Containers {
		for name, limit := range pod.Spec.Containers[i].Resources.Limits {
			text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
			if !ok {
				continue
			}
			if size, err := resource.ParseQuantity(text); err == nil {
				limits[size.Value()] += limit.Value()
			}
		}
	}
	return limits
}
