package status

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// forAll adds a second main container, with a rule that restarts all containers.
func forAll(in *Input) {
	in.Pod.Spec.Containers = append(in.Pod.Spec.Containers, corev1.Container{Name: "n",
		RestartPolicyRules: []corev1.ContainerRestartRule{{
			Action: corev1.ContainerRestartRuleActionRestartAllContainers}}})
}

// anew makes all containers have restarted after n ended, m having been stopped for it.
func anew(in *Input) {
	in.RestartAll = &podstate.RestartAll{Container: "n", ExitCode: 42, Last: map[string]uint32{"i": 0, "m": 0, "n": 0},
		Stopped: []string{"m"}}
}

func restarting(in *Input) { in.Plan.Restarting = true }

const upon = "Container n ended with exit code 42, upon which all containers are restarted"

func TestAllContainersRestarting(t *testing.T) {
	up, ranOut := instance("m", 0, observed.Running), instance("n", 0, observed.Exited, 42)
	before := func(in *Input) {
		in.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.AllContainersRestarting,
			Status: corev1.ConditionTrue, Message: "before"}}
	}
	for _, row := range []struct {
		name   string
		input  []func(*Input)
		status corev1.ConditionStatus
		reason string
		text   string
	}{
		{"none has ended", []func(*Input){forAll, up}, "False", "", ""},
		{"they are stopped", []func(*Input){forAll, up, ranOut, anew, restarting}, "True",
			"RestartAllContainersStarted", upon},
		{"it is not kept yet", []func(*Input){forAll, up, ranOut, restarting}, "True",
			"RestartAllContainersStarted", ""},
		{"all have ended", []func(*Input){forAll, ranOut, anew, before}, "False", "", ""},
		{"the Pod has succeeded", []func(*Input){forAll, instance("m", 0, observed.Exited, 0),
			instance("n", 0, observed.Exited, 0), ended(podstate.Finish), before}, "False", "PodCompleted", ""},
		{"the Pod has failed", []func(*Input){forAll, instance("m", 0, observed.Exited, 1), ended(podstate.Finish),
			before}, "False", "PodFailed", ""},
		{"no rule asks for it", []func(*Input){up}, "", "", ""},
		{"the condition is somebody else's", []func(*Input){up, before}, "True", "", "before"},
	} {
		status := Compute(with(row.input...))
		c := podview.Condition(&corev1.Pod{Status: status}, corev1.AllContainersRestarting)
		if c == nil {
			c = &corev1.PodCondition{}
		}
		if c.Status != row.status || c.Reason != row.reason || c.Message != row.text {
			t.Errorf("%s: %+v, want %s %s %q", row.name, c, row.status, row.reason, row.text)
		}
		n := 0
		for _, c := range status.Conditions {
			if c.Type == corev1.AllContainersRestarting {
				n++
			}
		}
		if n > 1 {
			t.Errorf("%s: %d conditions of the type", row.name, n)
		}
	}
}

// The Pod goes on running and stays initialized; stopped containers show why, and those that had ended show how.
func TestStatesWhileAllRestart(t *testing.T) {
	status := Compute(with(forAll, initC(corev1.Container{Name: "i"}), instance("i", 0, observed.Exited, 0),
		instance("m", 0, observed.Exited, 137), instance("n", 0, observed.Exited, 42), anew,
		plan(func(p *podstate.Plan) {
			waits := podstate.Waiting{Reason: podstate.RestartingAllContainers, Message: upon}
			p.Waiting = map[string]podstate.Waiting{"i": waits, "m": waits, "n": waits}
		})))
	pod := &corev1.Pod{Status: status}
	if c := podview.Condition(pod, corev1.PodInitialized); status.Phase != corev1.PodRunning ||
		c.Status != corev1.ConditionTrue || podview.IsReady(pod) {
		t.Errorf("phase %s, %+v, want a Pod that runs, is initialized and not ready", status.Phase, status.Conditions)
	}
	for i, want := range []corev1.ContainerStateTerminated{{ExitCode: 0, Reason: "Completed"},
		{ExitCode: 137, Reason: "RestartingAllContainers", Message: upon}, {ExitCode: 42, Reason: "Error"}} {
		s := append(status.InitContainerStatuses, status.ContainerStatuses...)[i]
		last := s.LastTerminationState.Terminated
		if s.State.Waiting == nil || s.State.Waiting.Reason != "RestartingAllContainers" || s.Ready || last == nil ||
			last.ExitCode != want.ExitCode || last.Reason != want.Reason || last.Message != want.Message {
			t.Errorf("%s: %+v, want it to wait, last %+v", s.Name, s, want)
		}
	}
}

// A Pod fails if an init container fails during a restart of all, however well the main ones ended before.
func TestInitFailureAfterRestartAll(t *testing.T) {
	failed := []func(*Input){forAll, initC(corev1.Container{Name: "i"}), instance("i", 1, observed.Exited, 1),
		instance("m", 0, observed.Exited, 0), instance("n", 0, observed.Exited, 0), anew, ended(podstate.Finish)}
	if got := Compute(with(failed...)).Phase; got != corev1.PodFailed {
		t.Errorf("phase %s, want Failed", got)
	}
}

// A Pod deleted during a restart of all has failed if a main container has not restarted, however well it ended
// before.
func TestPhaseDeletedWhileAllRestart(t *testing.T) {
	deletedAt := func(age time.Duration) func(*Input) {
		return func(in *Input) {
			in.Pod.DeletionTimestamp = &metav1.Time{Time: now.Add(30*time.Second - age)}
			in.Pod.DeletionGracePeriodSeconds = ptr.To(int64(30))
		}
	}
	upon := func(code int32) func(*Input) {
		return func(in *Input) {
			in.Pod.Spec.Containers[1].RestartPolicyRules[0].ExitCodes = &corev1.ContainerRestartRuleOnExitCodes{
				Operator: "In", Values: []int32{code}}
		}
	}
	lost := func(restarts int32) func(*Input) {
		return func(in *Input) {
			in.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "n", RestartCount: restarts,
				ContainerID: "containerd://n", State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://n"}}}}
		}
	}
	ran := func(name string, attempt uint32, code int32) func(*Input) {
		return instance(name, attempt, observed.Exited, code) // a second before now
	}
	for _, row := range []struct {
		name  string
		input []func(*Input)
		want  corev1.PodPhase
	}{
		{"none has begun anew", []func(*Input){anew, ran("m", 0, 0), ran("n", 0, 0)}, corev1.PodFailed},
		{"one has, and ended well", []func(*Input){anew, ran("m", 0, 0), ran("n", 1, 0)}, corev1.PodFailed},
		{"both have, and ended well", []func(*Input){anew, ran("m", 1, 0), ran("n", 1, 0)}, corev1.PodSucceeded},
		{"both have, and one failed", []func(*Input){anew, ran("m", 1, 143), ran("n", 1, 0)}, corev1.PodFailed},
		{"one was lost before", []func(*Input){anew, ran("m", 1, 0), lost(0)}, corev1.PodFailed},
		{"one was lost after", []func(*Input){anew, ran("m", 1, 0), lost(1)}, corev1.PodSucceeded},
		{"one asked for it just before the deletion", []func(*Input){upon(0), ran("m", 0, 0), ran("n", 0, 0),
			deletedAt(0)}, corev1.PodFailed},
		{"one asks for it when it is stopped", []func(*Input){upon(0), ran("m", 0, 0), ran("n", 0, 0),
			deletedAt(time.Second)}, corev1.PodSucceeded},
		{"one ended with another code", []func(*Input){upon(1), ran("m", 0, 0), ran("n", 0, 0), deletedAt(0)},
			corev1.PodSucceeded},
	} {
		input := append([]func(*Input){forAll, ended(podstate.Terminate)}, row.input...)
		if got := Compute(with(input...)).Phase; got != row.want {
			t.Errorf("%s: phase %s, want %s", row.name, got, row.want)
		}
	}
}
