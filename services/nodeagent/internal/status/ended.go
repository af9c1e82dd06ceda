package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
	apiseconds "keelson.dev/kit/seconds"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// What the API says of a container of which nobody knows how it ended.
const (
	reasonStatusUnknown  = "ContainerStatusUnknown"
	messageStatusUnknown = "The container could not be located when the pod was terminated"
	exitCodeUnknown      = 137
)

func unknownEnd(id string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{Reason: reasonStatusUnknown, Message: messageStatusUnknown,
		ExitCode: exitCodeUnknown, ContainerID: id}
}

// stopped says that no process of the Pod is left, nor will there be one.
func (c *computation) stopped() bool { return c.in.Plan.Goal != podstate.Run && c.in.Plan.Stopped }

// refused says that the Pod has failed as a whole before any of its containers had started. Its containers have no
// status then: what they would wait for hides why the Pod failed from those who print it.
func (c *computation) refused(out *corev1.PodStatus) bool {
	known := &c.in.Pod.Status
	told := len(known.InitContainerStatuses)+len(known.ContainerStatuses)+len(known.EphemeralContainerStatuses) > 0
	fails := c.in.Plan.Outcome != nil || podview.IsTerminal(c.in.Pod) && !told
	return c.stopped() && fails && !slices.ContainsFunc(out.InitContainerStatuses, hasStarted) &&
		!slices.ContainsFunc(out.ContainerStatuses, hasStarted) &&
		!slices.ContainsFunc(out.EphemeralContainerStatuses, hasStarted)
}

// end says of each container of a Pod that has stopped how it ended. Of an initialized Pod nobody can tell of any main
// container that it did not run, so that each counts as failed that is not known to have ended otherwise; so do the
// init containers up to the last that has started. A Pod that was not initialized has main containers that wait for
// ever.
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

// unfinished says that a container which has ended was to begin anew with all others, and has not: they had already
// been told to, or it ended so before its Pod was deleted. What it does when the deletion stops it asks for nothing.
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

// hasStarted says that an instance of the container has run, though it need not do so now.
func hasStarted(s corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
}
