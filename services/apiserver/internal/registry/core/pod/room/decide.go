// Package room knows what the Pods of each node ask for, so that no binding goes to a node that would refuse the Pod.
package room

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/noderesources"
)

// Lacking says what a Pod with these requests would not find on the node; empty: it fits. A node that has not yet said
// what it has is not judged; nor is an extended resource that it does not name, of which an extender of a scheduler
// keeps account.
func Lacking(requests corev1.ResourceList, used noderesources.Usage, allocatable corev1.ResourceList) string {
	if len(allocatable) == 0 {
		return ""
	}
	lack := used.Insufficient(known(requests, allocatable), allocatable)
	switch {
	case lack == nil:
		return ""
	case lack.Name == corev1.ResourcePods:
		return fmt.Sprintf("too many pods, bound: %s, allocatable: %s", &lack.Used, &lack.Capacity)
	}
	return fmt.Sprintf("insufficient %s, requested: %s, used: %s, allocatable: %s", lack.Name, &lack.Requested,
		&lack.Used, &lack.Capacity)
}

// known returns the requests without extended resources that are not among those of the node.
func known(requests, allocatable corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(requests)
	maps.DeleteFunc(out, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, named := allocatable[name]
		return !named && strings.Contains(string(name), "/") &&
			!strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
	})
	return out
}
