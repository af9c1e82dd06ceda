package priorityclass

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/systempriority"
)

const (
	// HighestUserValue is the largest value that a class other than the system's may have.
	HighestUserValue = int32(1000000000)
	// SystemPrefix starts the names that are kept for the system's own classes.
	SystemPrefix = "system-"

	// SystemClusterCritical is the class of what the cluster cannot do without.
	SystemClusterCritical = systempriority.ClusterCriticalClass
	// SystemNodeCritical is the class of what a Node cannot do without.
	SystemNodeCritical = systempriority.NodeCriticalClass
)

// System returns the classes that every cluster has from the start.
func System() []*schedulingv1.PriorityClass {
	return []*schedulingv1.PriorityClass{
		systemClass(SystemNodeCritical, systempriority.NodeCritical,
			"Used for system critical pods that must not be moved from their current node."),
		systemClass(SystemClusterCritical, systempriority.ClusterCritical,
			"Used for system critical pods that must run in the cluster, but can be moved to another node if "+
				"necessary."),
	}
}

func systemClass(name string, value int32, description string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		ObjectMeta:       metav1.ObjectMeta{Name: name},
		Value:            value,
		Description:      description,
		PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority),
	}
}

func isSystem(name string) bool { return systemNamed(name) != nil }

func systemNamed(name string) *schedulingv1.PriorityClass {
	classes := System()
	i := slices.IndexFunc(classes, func(c *schedulingv1.PriorityClass) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return classes[i]
}
