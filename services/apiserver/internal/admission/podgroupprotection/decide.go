package podgroupprotection

import (
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

// finalizer is the one that podgc takes away when no Pod that has not ended names the PodGroup.
const finalizer = "scheduling.k8s.io/podgroup-protection"

// protect gives a new PodGroup its finalizer. It leaves anything else alone.
func protect(object runtime.Object) {
	group, ok := object.(*schedulingv1beta1.PodGroup)
	if ok && !slices.Contains(group.Finalizers, finalizer) {
		group.Finalizers = append(group.Finalizers, finalizer)
	}
}
