package statuswriter

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/status"
)

// settle is how long a change that is not urgent may be held back, so that it is written with the next one: the
// start of a Pod on a fast node is then one write.
const settle = time.Second

// Delay returns how long a new status may be held back. ok is false if it equals the old one and need not be
// written.
func Delay(old, new *corev1.PodStatus) (delay time.Duration, ok bool) {
	if apiequality.Semantic.DeepEqual(old, new) {
		return 0, false
	}
	if urgent(old, new) {
		return 0, true
	}
	return settle, true
}

// urgent reports whether a client may be waiting for the change: of phase, readiness, the state of a container, or
// a restart of all containers. The first report of a Pod that is not yet running is not urgent.
func urgent(old, new *corev1.PodStatus) bool {
	if old.Phase != new.Phase || old.Reason != new.Reason {
		return true
	}
	if isReady(old) != isReady(new) || restartsAll(old) != restartsAll(new) {
		return true
	}
	return statesDiffer(old.InitContainerStatuses, new.InitContainerStatuses) ||
		statesDiffer(old.ContainerStatuses, new.ContainerStatuses) ||
		statesDiffer(old.EphemeralContainerStatuses, new.EphemeralContainerStatuses)
}

func isReady(s *corev1.PodStatus) bool { return podview.IsReady(&corev1.Pod{Status: *s}) }

func restartsAll(s *corev1.PodStatus) bool {
	c := podview.Condition(&corev1.Pod{Status: *s}, corev1.AllContainersRestarting)
	return c != nil && c.Status == corev1.ConditionTrue
}

// statesDiffer compares the fields on which readers of the status act. A container that has not been reported yet
// counts as one that waits without a reason.
func statesDiffer(old, new []corev1.ContainerStatus) bool {
	for i := range new {
		before := corev1.ContainerStatus{}
		if i < len(old) {
			before = old[i]
		}
		if kind(&before) != kind(&new[i]) || before.Ready != new[i].Ready ||
			before.RestartCount != new[i].RestartCount {
			return true
		}
	}
	return false
}

// kind names a container's state; all ordinary reasons for waiting count as the same.
func kind(s *corev1.ContainerStatus) string {
	switch {
	case s.State.Running != nil:
		return "Running"
	case s.State.Terminated != nil:
		return "Terminated"
	case s.State.Waiting == nil, s.State.Waiting.Reason == podstate.ContainerCreating,
		s.State.Waiting.Reason == status.PodInitializing:
		return ""
	}
	return s.State.Waiting.Reason
}
