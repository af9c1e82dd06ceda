package scenario

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRunsOfStatuses: each run is found with its times, whichever of a container's statuses were seen; one that is
// created and not started, which bears the next run's restart count, is no run.
func TestRunsOfStatuses(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second)) }
	ended := func(id string, begin, end int) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ContainerID: id, StartedAt: at(begin), FinishedAt: at(end)}
	}
	status := func(id string, restarts int32, state corev1.ContainerState,
		last *corev1.ContainerStateTerminated) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{ContainerID: id,
			RestartCount: restarts, State: state, LastTerminationState: corev1.ContainerState{Terminated: last}}}}}
	}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	running := func(begin int) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(begin)}}
	}
	seen := runs{}
	for _, s := range []struct {
		pod  *corev1.Pod
		runs int
	}{
		{status("", 0, waiting("ContainerCreating"), nil), 0},
		{status("c", 2, running(11), ended("b", 0, 1)), 2},
		{status("c", 2, waiting("CrashLoopBackOff"), ended("c", 11, 12)), 2},
		{status("d", 3, waiting("ContainerCreating"), ended("c", 11, 12)), 2},
		{status("d", 3, corev1.ContainerState{Terminated: ended("d", 32, 33)}, ended("c", 11, 12)), 3},
		{status("e", 4, waiting("ContainerCreating"), ended("a", 0, 0)), 4},
	} {
		seen.take(s.pod)
		if len(seen) != s.runs {
			t.Fatalf("after %+v: %+v, want %d runs", s.pod.Status.ContainerStatuses, seen.inOrder(), s.runs)
		}
	}
	for i, want := range [][2]int{{0, 0}, {0, 1}, {11, 12}, {32, 33}} {
		if r := seen.inOrder()[i]; !r.begun.Equal(at(want[0]).Time) || !r.ended.Equal(at(want[1]).Time) {
			t.Errorf("run %d is %+v, want %v", i, r, want)
		}
	}
}
