package podfeed

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// namedPorts keeps the ports that a Service may call by name: those of the containers and, after them, of the
// sidecars, all in one container. Of init containers that end a Service finds none.
func namedPorts(spec *corev1.PodSpec) []corev1.Container {
	var ports []corev1.ContainerPort
	for i := range spec.Containers {
		ports = appendNamed(ports, spec.Containers[i].Ports)
	}
	for i := range spec.InitContainers {
		if podview.IsSidecar(&spec.InitContainers[i]) {
			ports = appendNamed(ports, spec.InitContainers[i].Ports)
		}
	}
	if len(ports) == 0 {
		return nil
	}
	return []corev1.Container{{Ports: ports}}
}

func appendNamed(ports, more []corev1.ContainerPort) []corev1.ContainerPort {
	for _, port := range more {
		if port.Name != "" {
			ports = append(ports, corev1.ContainerPort{Name: port.Name, Protocol: port.Protocol,
				ContainerPort: port.ContainerPort})
		}
	}
	return ports
}
