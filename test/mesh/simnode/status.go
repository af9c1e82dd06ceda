package simnode

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status is what a node says of a Pod that it has started.
func status(pod *corev1.Pod, now metav1.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	s.Phase, s.StartTime, s.HostIP = corev1.PodRunning, &now, "127.0.0.1"
	s.PodIP = "127.0.0.1"
	s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	ready := corev1.ConditionTrue
	for _, c := range pod.Spec.Containers {
		state := containerStatus(c, now)
		if !state.Ready {
			ready = corev1.ConditionFalse
		}
		if state.State.Waiting != nil {
			s.Phase = corev1.PodPending
		}
		s.ContainerStatuses = append(s.ContainerStatuses, state)
	}
	for _, c := range []struct {
		kind   corev1.PodConditionType
		status corev1.ConditionStatus
	}{{corev1.PodInitialized, corev1.ConditionTrue}, {corev1.ContainersReady, ready}, {corev1.PodReady, ready}} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: c.kind, Status: c.status,
			LastTransitionTime: now})
	}
	return s
}

func containerStatus(c corev1.Container, now metav1.Time) corev1.ContainerStatus {
	started := c.Image != NeverStart
	state := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, Started: &started, Ready: started && c.Image != NeverReady,
	}
	if !started {
		state.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "simulated"}
		return state
	}
	state.ContainerID = "sim://" + c.Name
	state.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
	return state
}
