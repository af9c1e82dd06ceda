package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/podview"
)

// Reasons that a Pod's own status does not have in this form.
const (
	reasonNodeLost    = "NodeLost"
	reasonUnknown     = "Unknown"
	reasonTerminating = "Terminating"
	reasonCompleted   = "Completed"
	reasonRunning     = "Running"
	reasonNotReady    = "NotReady"
)

// summary is a Pod in the few words of one line.
type summary struct {
	reason      string
	ready       int
	containers  int // those that are to be ready at once: sidecars and main containers
	restarts    int32
	lastRestart metav1.Time
}

// restarted adds a container's restarts.
func (s *summary) restarted(status *corev1.ContainerStatus) {
	s.restarts += status.RestartCount
	if ended := status.LastTerminationState.Terminated; ended != nil && s.lastRestart.Before(&ended.FinishedAt) {
		s.lastRestart = ended.FinishedAt
	}
}

// summarize counts what is ready and finds the one reason that says most about the Pod: that it goes away, else what an
// init container waits for, else what a main container waits for or ended with, else the Pod's own.
func summarize(p *corev1.Pod) summary {
	s := summary{reason: string(p.Status.Phase), containers: len(p.Spec.Containers)}
	if p.Status.Reason != "" {
		s.reason = p.Status.Reason
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	if initializing := s.addInitContainers(p); !initializing || hasCondition(&p.Status, corev1.PodInitialized) {
		s.addContainers(p)
	}
	if p.DeletionTimestamp != nil {
		switch {
		case p.Status.Reason == reasonNodeLost:
			s.reason = reasonUnknown
		case !isTerminal(p.Status.Phase):
			s.reason = reasonTerminating
		}
	}
	return s
}

// addInitContainers counts the sidecars and reports whether one of the init containers holds the Pod back. Restarts are
// counted up to that one; behind the last of them only those of sidecars matter.
func (s *summary) addInitContainers(p *corev1.Pod) (initializing bool) {
	sidecars := map[string]bool{}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; podview.IsSidecar(c) {
			sidecars[c.Name] = true
			s.containers++
		}
	}
	all, running := *s, *s
	for i := range p.Status.InitContainerStatuses {
		status := &p.Status.InitContainerStatuses[i]
		all.restarted(status)
		sidecar := sidecars[status.Name]
		if sidecar {
			running.restarted(status)
		}
		switch ended := status.State.Terminated; {
		case ended != nil && ended.ExitCode == 0:
		case sidecar && status.Started != nil && *status.Started:
			if status.Ready {
				s.ready++
			}
		default:
			s.reason = initReason(status, i, len(p.Spec.InitContainers))
			initializing = true
		}
		if initializing {
			break
		}
	}
	counted := running
	if initializing && !hasCondition(&p.Status, corev1.PodInitialized) {
		counted = all
	}
	s.restarts, s.lastRestart = counted.restarts, counted.lastRestart
	return initializing
}

// initReason says why the init container at index is not done.
func initReason(status *corev1.ContainerStatus, index, count int) string {
	const notStarted = "PodInitializing"
	switch ended, waiting := status.State.Terminated, status.State.Waiting; {
	case ended != nil:
		return "Init:" + endReason(ended)
	case waiting != nil && waiting.Reason != "" && waiting.Reason != notStarted:
		return "Init:" + waiting.Reason
	}
	return fmt.Sprintf("Init:%d/%d", index, count)
}

// addContainers counts the main containers. The first one that is not simply running gives the reason.
func (s *summary) addContainers(p *corev1.Pod) {
	running := false
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		status := &p.Status.ContainerStatuses[i]
		s.restarted(status)
		switch state := status.State; {
		case state.Waiting != nil && state.Waiting.Reason != "":
			s.reason = state.Waiting.Reason
		case state.Terminated != nil:
			s.reason = endReason(state.Terminated)
		case status.Ready && state.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != reasonCompleted || !running {
		return
	}
	s.reason = reasonNotReady
	if hasCondition(&p.Status, corev1.PodReady) {
		s.reason = reasonRunning
	}
}

func endReason(ended *corev1.ContainerStateTerminated) string {
	switch {
	case ended.Reason != "":
		return ended.Reason
	case ended.Signal != 0:
		return fmt.Sprintf("Signal:%d", ended.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", ended.ExitCode)
}
