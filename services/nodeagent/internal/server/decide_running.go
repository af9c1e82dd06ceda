package server

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/observed"
)

// runningPods returns the Pods that have a running container or sandbox in the runtime, with the running
// containers, as API objects; it leaves out what the API cannot express.
func runningPods(has []observed.Pod) corev1.PodList {
	list := corev1.PodList{Items: []corev1.Pod{}}
	list.Kind, list.APIVersion = "PodList", "v1"
	for i := range has {
		pod := corev1.Pod{}
		pod.UID, pod.Namespace, pod.Name = types.UID(has[i].UID), has[i].Namespace, has[i].Name
		pod.Spec.Containers = []corev1.Container{}
		for j := range has[i].Containers {
			if c := &has[i].Containers[j]; c.State == observed.Running {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
			}
		}
		if len(pod.Spec.Containers) > 0 ||
			slices.ContainsFunc(has[i].Sandboxes, func(s observed.Sandbox) bool { return s.Ready }) {
			list.Items = append(list.Items, pod)
		}
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return list
}
