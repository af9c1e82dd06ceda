package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/lifecycle"
)

// Waiting reasons of a container that could not be started, or not kept running, as the API names them.
const (
	ContainerCreating          = "ContainerCreating"
	CrashLoopBackOff           = "CrashLoopBackOff"
	ErrImagePull               = "ErrImagePull"
	ImagePullBackOff           = "ImagePullBackOff"
	ErrImageNeverPull          = "ErrImageNeverPull"
	InvalidImageName           = "InvalidImageName"
	ImageInspectError          = "ImageInspectError"
	CreateContainerConfigError = "CreateContainerConfigError"
	CreateContainerError       = "CreateContainerError"
	RunContainerError          = "RunContainerError"
	PostStartHookError         = "PostStartHookError"
)

// showPullError is how long ErrImagePull is shown before ImagePullBackOff.
const showPullError = 3 * time.Second

// faultDelayOver reports whether a failed start may be tried again; if not, it shows why the container waits.
func (v *view) faultDelayOver(key Key, name string) bool {
	fault, failed := v.in.Memory.Faults[key]
	if !failed {
		return true
	}
	if fault.Reason != ErrImagePull {
		v.plan.Waiting[name] = Waiting{Reason: fault.Reason, Message: fault.Message}
		return v.due(key, lifecycle.StepDelay)
	}
	v.plan.Waiting[name] = v.pullWaiting(fault)
	return v.due(key, lifecycle.PullDelay)
}

// pullWaiting shows the error of a failed pull first, then that the container is in back-off. Only the first
// failure is shown alone: alternating would cost a status write each time and add no information.
func (v *view) pullWaiting(fault Fault) Waiting {
	if shown := fault.At.Add(showPullError); fault.Count == 1 && v.in.Now.Before(shown) {
		v.wake(shown)
		return Waiting{Reason: ErrImagePull, Message: fault.Message}
	}
	return Waiting{Reason: ImagePullBackOff, Message: "Back-off pulling image " + fault.Message}
}

func statusLists(pod *corev1.Pod) [][]corev1.ContainerStatus {
	return [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses,
		pod.Status.EphemeralContainerStatuses}
}
