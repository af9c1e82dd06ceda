package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
	apiseconds "keelson.dev/kit/seconds"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// The API's values for a container whose end is unknown.
const (
	reasonStatusUnknown  = "ContainerStatusUnknown"
	messageStatusUnknown = "The container could not be located when the pod was terminated"
	exitCodeUnknown      = 137
)

func unknownEnd(id string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{Reason: reasonStatusUnknown, Message: messageStatusUnknown,
		ExitCode: exitCodeUnknown, ContainerID: id}
}

// stopped reports whether no process of the Pod is left and none will be started.
func (c *computation) stopped() bool { return c.in.Plan.Goal != podstate.Run && c.in.Plan.Stopped }

// refused reports whether the Pod has failed as a whole before any of its containers started. Its containers have
// no status then: in the output of clients, their reasons for waiting would hide why the Pod failed.
func (c *computation) refused(out *corev1.PodStatus) bool {
	known := &c.in.Pod.Status
	told := len(known.InitContainerStatuses)+len(known.ContainerStatuses)+len(known.EphemeralContainerStatuses) > 0
	fails := c.in.Plan.Outcome != nil || podview.IsTerminal(c.in.Pod) && !told
	return c.stopped() && fails && !slices.ContainsFunc(out.InitContainerStatuses, hasStarted) &&
		!slices.ContainsFunc(out.ContainerStatuses, hasStarted) &&
		!slices.ContainsFunc(out.EphemeralContainerStatuses, hasStarted)
}

// end sets how each container of a stopped Pod ended. In an initialized Pod any main container may have run, so
// that each whose end is unknown counts as failed; so do the init containers up to the last that has started. In a
// Pod that was not initialized, main containers keep waiting.
func (c *computation) end(out *corev1.PodStatus) {
	initialized := c.initialized(out)
	for i := len(out.InitContainerStatuses) - 1; i >= 0; i-- {
		if hasStarted(out.InitContainerStatuses[i]) {
			endAll(out.InitContainerStatuses[:i+1])
			break
		}
	}
	if initialized {
		endAll(out.ContainerStatuses)
	}
}

// unfinished reports whether a container that has ended was to restart with all others, and has not: the restart
// had already begun, or the container ended in this way before its Pod was deleted. Its exit code after the
// deletion stops it has no such effect.
func (c *computation) unfinished(e lifecycle.Entry, s *corev1.ContainerStatus) bool {
	if c.in.RestartAll.Before(s.Name, uint32(max(s.RestartCount, 0))) {
		return true
	}
	at, grace := c.in.Pod.DeletionTimestamp, c.in.Pod.DeletionGracePeriodSeconds
	if at == nil || grace == nil || !e.RestartsAll(s.State.Terminated.ExitCode) {
		return false
	}
	return s.State.Terminated.FinishedAt.Time.Before(at.Add(-apiseconds.Of(*grace)))
}

func endAll(containers []corev1.ContainerStatus) {
	for i := range containers {
		if s := &containers[i]; s.State.Terminated == nil {
			s.State = corev1.ContainerState{Terminated: unknownEnd(s.ContainerID)}
		}
	}
}

// hasStarted reports whether an instance of the container has run, even if none runs now.
func hasStarted(s corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
}
