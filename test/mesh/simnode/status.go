package simnode

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/podview"
)

// status is what a node says of a Pod that it has started.
func status(pod *corev1.Pod, address string, now metav1.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	s.Phase, s.StartTime, s.HostIP = corev1.PodRunning, &now, "127.0.0.1"
	s.PodIP = address
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

// readiness is what a node says of a Pod of which another client has said that it is not ready; false means that it is
// as it should be.
func readiness(pod *corev1.Pod, now metav1.Time) (corev1.PodStatus, bool) {
	ready, serves := podview.IsReady(pod), len(pod.Status.ContainerStatuses) > 0
	for _, c := range pod.Status.ContainerStatuses {
		serves = serves && c.Ready
	}
	if ready || !serves || podview.Condition(pod, corev1.PodReady) == nil {
		return corev1.PodStatus{}, false
	}
	s := *pod.Status.DeepCopy()
	s.Conditions, _ = conditions.Pod.Set(s.Conditions, corev1.PodCondition{Type: corev1.PodReady,
		Status: corev1.ConditionTrue}, now.Time)
	return s, true
}

// killedCode is the exit code of a container that a signal has ended.
const killedCode = 137

// exitCode returns the exit code of a Pod that ends on its own: one whose first container's command ends in a word
// like "exit 3", and that must not be restarted.
func exitCode(pod *corev1.Pod) (code int32, ends bool) {
	command := pod.Spec.Containers[0].Command
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || len(command) == 0 {
		return 0, false
	}
	_, err := fmt.Sscanf(command[len(command)-1], "exit %d", &code)
	return code, err == nil
}

// killed is what a node says of a Pod whose containers it has ended.
func killed(pod *corev1.Pod, now metav1.Time) corev1.PodStatus { return ended(pod, killedCode, now) }

// ended is what a node says of a Pod whose containers have all ended with the code.
func ended(pod *corev1.Pod, code int32, now metav1.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	reason := "Completed"
	if s.Phase = corev1.PodSucceeded; code != 0 {
		s.Phase, reason = corev1.PodFailed, "Error"
	}
	for i := range s.ContainerStatuses {
		no := false
		state := &s.ContainerStatuses[i]
		state.Ready, state.Started = false, &no
		state.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason,
			StartedAt: now, FinishedAt: now, ContainerID: state.ContainerID}}
	}
	for i := range s.Conditions {
		if kind := s.Conditions[i].Type; kind == corev1.PodReady || kind == corev1.ContainersReady {
			s.Conditions[i].Status, s.Conditions[i].LastTransitionTime = corev1.ConditionFalse, now
		}
	}
	return s
}
