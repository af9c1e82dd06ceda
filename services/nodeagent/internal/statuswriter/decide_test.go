package statuswriter

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestDelay(t *testing.T) {
	for _, r := range []struct {
		name     string
		old, new corev1.PodStatus
		want     time.Duration
		write    bool
	}{
		{"nothing changed", running, running, 0, false},
		{"first report may wait", corev1.PodStatus{Phase: corev1.PodPending}, pending, time.Second, true},
		{"sandbox may wait", pending, sandboxed, time.Second, true},
		{"running does not wait", pending, running, 0, true},
		{"a crash does not wait", running, crashing, 0, true},
	} {
		t.Run(r.name, func(t *testing.T) {
			if delay, write := Delay(&r.old, &r.new); delay != r.want || write != r.write {
				t.Errorf("Delay = %v, %v; want %v, %v", delay, write, r.want, r.write)
			}
		})
	}
}

// A change is held back for a second at most, and not at all if a client may be waiting for it.
func TestWhatIsUrgent(t *testing.T) {
	type edit = func(*corev1.PodStatus)
	state := func(name string, s corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: s}
	}
	waiting := func(name, reason string) corev1.ContainerStatus {
		return state(name, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}})
	}
	up := state("m", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	down := state("m", corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
	was := corev1.PodStatus{Phase: corev1.PodPending, Reason: "r", Message: "m",
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
		ContainerStatuses: []corev1.ContainerStatus{waiting("m", "ContainerCreating")}}
	main := func(s corev1.ContainerStatus) edit {
		return func(p *corev1.PodStatus) { p.ContainerStatuses[0] = s }
	}
	for _, row := range []struct {
		name   string
		change edit
		want   time.Duration
	}{
		{"message", func(p *corev1.PodStatus) { p.Message = "other" }, time.Second},
		{"address", func(p *corev1.PodStatus) { p.PodIP = "10.0.0.1" }, time.Second},
		{"all containers restart", func(p *corev1.PodStatus) {
			p.Conditions = append(p.Conditions, corev1.PodCondition{Type: corev1.AllContainersRestarting,
				Status: "True"})
		}, 0},
		{"they may restart some day", func(p *corev1.PodStatus) {
			p.Conditions = append(p.Conditions, corev1.PodCondition{Type: corev1.AllContainersRestarting,
				Status: "False"})
		}, time.Second},
		{"another condition", func(p *corev1.PodStatus) {
			p.Conditions = append(p.Conditions, corev1.PodCondition{Type: corev1.PodInitialized, Status: "True"})
		}, time.Second},
		{"phase", func(p *corev1.PodStatus) { p.Phase = corev1.PodRunning }, 0},
		{"reason", func(p *corev1.PodStatus) { p.Reason = "Evicted" }, 0},
		{"readiness", func(p *corev1.PodStatus) { p.Conditions[0].Status = corev1.ConditionTrue }, 0},
		{"image of a container", func(p *corev1.PodStatus) { p.ContainerStatuses[0].Image = "i" }, time.Second},
		{"readiness of a container", func(p *corev1.PodStatus) { p.ContainerStatuses[0].Ready = true }, 0},
		{"restarts of a container", func(p *corev1.PodStatus) { p.ContainerStatuses[0].RestartCount = 1 }, 0},
		{"it runs", main(up), 0},
		{"it has ended", main(down), 0},
		{"it waits for a sandbox", main(waiting("m", "PodInitializing")), time.Second},
		{"it waits and nobody knows why", main(state("m", corev1.ContainerState{})), time.Second},
		{"its image cannot be had", main(waiting("m", "ErrImagePull")), 0},
		{"a second container waits", func(p *corev1.PodStatus) {
			p.ContainerStatuses = append(p.ContainerStatuses, waiting("n", "ContainerCreating"))
		}, time.Second},
		{"a second container runs", func(p *corev1.PodStatus) {
			p.ContainerStatuses = append(p.ContainerStatuses, up)
		}, 0},
		{"an init container runs", func(p *corev1.PodStatus) {
			p.InitContainerStatuses = []corev1.ContainerStatus{up}
		}, 0},
		{"an init container waits", func(p *corev1.PodStatus) {
			p.InitContainerStatuses = []corev1.ContainerStatus{waiting("i", "PodInitializing")}
		}, time.Second},
		{"an ephemeral container runs", func(p *corev1.PodStatus) {
			p.EphemeralContainerStatuses = []corev1.ContainerStatus{up}
		}, 0},
	} {
		now := was.DeepCopy()
		row.change(now)
		if delay, write := Delay(&was, now); delay != row.want || !write {
			t.Errorf("%s: held back for %v (written: %v), want %v", row.name, delay, write, row.want)
		}
	}
}
