package podfeed

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func amountsOf(cpu string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu)}
}

// shapely is a Pod with all that a shape follows from.
func shapely(changes ...func(*corev1.Pod)) *corev1.Pod {
	asks := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("10m"),
		"memory": resource.MustParse("16Mi")}, Limits: amountsOf("1")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Resources: asks,
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: "TCP"}}}},
			InitContainers: []corev1.Container{{Name: "init", Resources: asks}},
			Overhead:       amountsOf("5m"),
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled}, {Type: corev1.PodInitialized},
				{Type: corev1.ContainersReady}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Resources: &asks,
				AllocatedResources: asks.Requests}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// POD-232, DEP-210: whatever is kept of a Pod's containers is worked out anew for a Pod in which it is different.
func TestAShapeIsThatOfThePod(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for i, change := range []func(*corev1.Pod){
		func(*corev1.Pod) {},
		func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = amountsOf("20m") },
		func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = amountsOf("20Mi") },
		func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = amountsOf("20M") },
		func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = amountsOf("20n") },
		func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Limits = amountsOf("2") },
		func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "other" },
		func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports[0].Name = "dns" },
		func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports[0].Protocol = "UDP" },
		func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports[0].ContainerPort = 81 },
		func(pod *corev1.Pod) { pod.Spec.InitContainers[0].RestartPolicy = &always },
		func(pod *corev1.Pod) { pod.Spec.InitContainers[0].Resources.Requests = amountsOf("7") },
		func(pod *corev1.Pod) {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "more"})
		},
		func(pod *corev1.Pod) { pod.Spec.Overhead = amountsOf("6m") },
		func(pod *corev1.Pod) { pod.Spec.Resources = &corev1.ResourceRequirements{Requests: amountsOf("3")} },
		func(pod *corev1.Pod) { pod.Spec.Resources = &corev1.ResourceRequirements{Limits: amountsOf("9")} },
		func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].AllocatedResources = amountsOf("40m") },
		func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Requests: amountsOf("50m")}
		},
		func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: amountsOf("50m")}
		},
		func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = nil
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending,
				Reason: corev1.PodReasonInfeasible})
		},
	} {
		pod := shapely(change)
		want := shape{amounts: amounts(pod), requests: requests(pod), ports: namedPorts(&pod.Spec)}
		if got := shapeOf(pod); !reflect.DeepEqual(*got, want) {
			t.Errorf("change %d: kept %+v, want %+v", i, *got, want)
		}
		if shapeOf(shapely(change)) != shapeOf(pod) {
			t.Errorf("change %d: two Pods that are alike have two shapes", i)
		}
	}
}

// Every event of every Pod is trimmed: what is kept of its containers is worked out once. A Pod costs the list of its
// conditions that are kept, and nothing else.
func TestTrimmingAllocatesOneList(t *testing.T) {
	const runs = 100
	pods := make([]*corev1.Pod, runs+1)
	for i := range pods {
		pods[i] = shapely(func(pod *corev1.Pod) { pod.Name = fmt.Sprint("web-", i) })
	}
	trimPod(shapely())
	next := 0
	allocated := testing.AllocsPerRun(runs, func() {
		trimPod(pods[next])
		next++
	})
	if allocated > 1 {
		t.Errorf("trimming a Pod allocates %v times, want once", allocated)
	}
}
