package pressure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/qos"
)

// message says why a Pod is evicted, as the kubelet words it: what the node was short of, and which of the Pod's
// containers use more of that than they requested.
func message(t Threshold, level Level, pod *Pod) string {
	what := t.Signal.starves()
	var out strings.Builder
	fmt.Fprintf(&out, "The node was low on resource: %s. Threshold quantity: %s, available: %s. ", what,
		binary(t.Least.Of(level.Capacity)), binary(level.Available))
	if what != memory && what != storage {
		return out.String()
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		used, known := pod.Usage.Containers[c.Name]
		request := c.Resources.Requests[corev1.ResourceName(what)]
		if known && used > request.Value() {
			fmt.Fprintf(&out, "Container %s was using %s, request is %s, has larger consumption of %s. ", c.Name,
				binary(used), request.String(), what)
		}
	}
	return out.String()
}

func binary(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// Admit returns why a node that is short of something refuses a Pod; nil admits it. Critical Pods are always
// admitted and, if only memory is short, so are those that have requested something or tolerate the condition.
func Admit(pod *corev1.Pod, static bool, conditions []corev1.NodeConditionType) *podstate.Outcome {
	if len(conditions) == 0 || qos.IsCritical(pod, static) {
		return nil
	}
	if len(conditions) == 1 && conditions[0] == corev1.NodeMemoryPressure &&
		(qos.Class(pod) != corev1.PodQOSBestEffort || tolerates(pod, corev1.TaintNodeMemoryPressure)) {
		return nil
	}
	return &podstate.Outcome{Reason: podstate.ReasonEvicted,
		Message: fmt.Sprintf("Pod was rejected: The node had condition: %v. ", conditions)}
}

func tolerates(pod *corev1.Pod, key string) bool {
	taint := &corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
	return slices.ContainsFunc(pod.Spec.Tolerations,
		func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, true) })
}
