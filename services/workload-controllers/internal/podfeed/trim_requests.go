package podfeed

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// requests are the containers that run as long as the Pod, with what each asks for: an autoscaler compares their use
// with it. What the Pod asks for as a whole stands first, in one without a name. They are kept only of Pods that ask
// for anything.
func requests(pod *corev1.Pod) []corev1.Container {
	var running []corev1.Container
	asks := false
	add := func(name string, asked corev1.ResourceList) {
		running = append(running, corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: asked}})
		asks = asks || len(asked) > 0
	}
	if whole := pod.Spec.Resources; whole != nil && len(whole.Requests) > 0 {
		add("", whole.Requests)
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podview.IsSidecar(c) {
			add(c.Name, c.Resources.Requests)
		}
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Name, pod.Spec.Containers[i].Resources.Requests)
	}
	if !asks {
		return nil
	}
	return running
}
