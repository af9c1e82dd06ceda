package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// chooseContainer is the container that a log or a stream is of: the one that is named, or the only one there is.
func chooseContainer(p *corev1.Pod, name string) (string, error) {
	if name != "" {
		if !hasContainer(p, name) {
			return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, p.Name))
		}
		return name, nil
	}
	if len(p.Spec.Containers) == 1 {
		return p.Spec.Containers[0].Name, nil
	}
	message := fmt.Sprintf("a container name must be specified for pod %s", p.Name)
	if names := containerNames(p.Spec.Containers); len(names) > 0 {
		message += fmt.Sprintf(", choose one of: [%s]", strings.Join(names, " "))
	}
	if names := containerNames(p.Spec.InitContainers); len(names) > 0 {
		message += fmt.Sprintf(" or one of the init containers: [%s]", strings.Join(names, " "))
	}
	return "", apierrors.NewBadRequest(message)
}

func hasContainer(p *corev1.Pod, name string) bool {
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return true
			}
		}
	}
	for i := range p.Spec.EphemeralContainers {
		if p.Spec.EphemeralContainers[i].Name == name {
			return true
		}
	}
	return false
}

func containerNames(containers []corev1.Container) []string {
	names := make([]string, len(containers))
	for i := range containers {
		names[i] = containers[i].Name
	}
	return names
}
