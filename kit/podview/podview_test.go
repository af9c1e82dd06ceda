package podview

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAvailability(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ready := func(status corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(start)},
		}}}
	}
	tests := map[string]struct {
		pod      *corev1.Pod
		minReady time.Duration
		now      time.Time
		want     bool
	}{
		"no condition":                   {&corev1.Pod{}, 0, start, false},
		"unknown":                        {ready(corev1.ConditionUnknown), 0, start, false},
		"ready without a minimum":        {ready(corev1.ConditionTrue), 0, start, true},
		"node's clock ahead, no minimum": {ready(corev1.ConditionTrue), 0, start.Add(-time.Minute), true},
		"one second short of the minimum": {ready(corev1.ConditionTrue), 10 * time.Second, start.Add(9 * time.Second),
			false},
		"exactly the minimum": {ready(corev1.ConditionTrue), 10 * time.Second, start.Add(10 * time.Second),
			true},
		"not ready for long": {ready(corev1.ConditionFalse), 10 * time.Second, start.Add(time.Hour),
			false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsAvailable(test.pod, test.minReady, test.now); got != test.want {
				t.Errorf("IsAvailable = %v, want %v", got, test.want)
			}
		})
	}
}

func TestIsActive(t *testing.T) {
	now := metav1.Now()
	for _, phase := range []corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodUnknown,
		corev1.PodSucceeded, corev1.PodFailed} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
		terminal := phase == corev1.PodSucceeded || phase == corev1.PodFailed
		if IsTerminal(pod) != terminal || IsActive(pod) == terminal {
			t.Errorf("phase %q: terminal %v, active %v", phase, IsTerminal(pod), IsActive(pod))
		}
		pod.DeletionTimestamp = &now
		if IsActive(pod) {
			t.Errorf("phase %q: a Pod being deleted counts as active", phase)
		}
	}
}

func TestIsSidecar(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	if IsSidecar(&corev1.Container{}) || !IsSidecar(&corev1.Container{RestartPolicy: &always}) {
		t.Error("only restartPolicy Always makes a sidecar")
	}
}
