// Package room knows what the Pods of each node ask for, so that no binding goes to a node that would refuse the Pod.
package room

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/noderesources"
)

// Lacking says what a Pod with these requests would not find on the node; empty: it fits. A node that has not yet said
// what it has is not judged.
func Lacking(requests corev1.ResourceList, used noderesources.Usage, allocatable corev1.ResourceList) string {
	if len(allocatable) == 0 {
		return ""
	}
	lack := used.Insufficient(requests, allocatable)
	switch {
	case lack == nil:
		return ""
	case lack.Name == corev1.ResourcePods:
		return fmt.Sprintf("too many pods, bound: %s, allocatable: %s", &lack.Used, &lack.Capacity)
	}
	return fmt.Sprintf("insufficient %s, requested: %s, used: %s, allocatable: %s", lack.Name, &lack.Requested,
		&lack.Used, &lack.Capacity)
}
