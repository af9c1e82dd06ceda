package scheme

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// addWorkloads registers the kinds of scheduling.k8s.io/v1beta1 that are about groups of Pods. Its PriorityClass is
// served no longer.
func addWorkloads(scheme *runtime.Scheme) error {
	version := schedulingv1beta1.SchemeGroupVersion
	scheme.AddKnownTypes(version,
		&schedulingv1beta1.PodGroup{}, &schedulingv1beta1.PodGroupList{},
		&schedulingv1beta1.Workload{}, &schedulingv1beta1.WorkloadList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}
