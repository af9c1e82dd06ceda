package steps

import (
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/containerconfig"
)

// ResizeCgroup sets the limits of the Pod's cgroup to the Pod's size.
func (s *Steps) ResizeCgroup(pod *corev1.Pod) error {
	return s.Cgroups.EnsurePod(pod, s.CPUs.Holds(pod.UID))
}

// Limits returns the limits of a running instance of the container.
func (s *Steps) Limits(pod *corev1.Pod, container *corev1.Container) *cri.LinuxContainerResources {
	return s.cpus(pod, container).Of(containerconfig.Resized(pod, container, s.Node))
}

// MemoryUsed returns the memory in bytes that an instance uses and that cannot be dropped at once; without an ID, that
// of the whole Pod.
func (s *Steps) MemoryUsed(pod *corev1.Pod, containerID string) (used uint64, err error) {
	var usage cgroup.Usage
	if containerID == "" {
		usage, err = s.Cgroups.PodUsage(pod)
	} else {
		usage, err = s.Cgroups.ContainerUsage(pod, containerID)
	}
	return usage.WorkingSet, err
}
