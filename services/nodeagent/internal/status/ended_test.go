package status

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// states lists the states of all containers, by kind and in the order of the spec.
func states(s corev1.PodStatus) string {
	var out []string
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses,
		s.EphemeralContainerStatuses} {
		for i := range list {
			out = append(out, list[i].Name+" "+describe(list[i].State))
		}
	}
	return strings.Join(out, ", ")
}

// reported sets a Pod's condition Initialized as the API has it.
func reported(is corev1.ConditionStatus) func(*Input) {
	return func(in *Input) {
		in.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: is}}
	}
}

// How containers ended, for each way in which a Pod ends and each state of its initialization. A main container counts
// as failed if it may have run, and keeps waiting if it cannot have; a Pod that failed as a whole before anything had
// started has no container statuses, so that its own reason is shown.
//
// SAF-138, POD-078
func TestHowContainersEnded(t *testing.T) {
	const waits, unknown = "PodInitializing", "ContainerStatusUnknown 137"
	i, j := initC(corev1.Container{Name: "i"}), initC(corev1.Container{Name: "j"})
	ran := instance("i", 0, observed.Exited, 0)
	knownInit := func(s corev1.ContainerStatus) func(*Input) {
		return func(in *Input) { in.Pod.Status.InitContainerStatuses = append(in.Pod.Status.InitContainerStatuses, s) }
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, row := range []struct {
		name string
		pod  []func(*Input)
		// deleted and failed are the expected states after a deletion, and after the Pod failed as a whole.
		deleted, failed string
	}{
		{"no init containers, nothing started", nil, "m " + unknown, ""},
		{"no init containers, one is made and not begun", []func(*Input){instance("m", 0, observed.Created)},
			"m " + unknown, ""},
		{"no init containers, it ran", []func(*Input){instance("m", 0, observed.Exited, 143)}, "m Error 143",
			"m Error 143"},
		{"no init containers, it ran and the record is lost", []func(*Input){
			stored(corev1.ContainerStatus{Name: "m", State: running})}, "m " + unknown, "m " + unknown},
		{"no init container has started", []func(*Input){i, j}, "i " + waits + ", j " + waits + ", m " + waits, ""},
		{"the first of two was stopped", []func(*Input){i, j, instance("i", 0, observed.Exited, 143)},
			"i Error 143, j " + waits + ", m " + waits, "i Error 143, j " + waits + ", m " + waits},
		{"the first of two has ended well", []func(*Input){i, j, ran},
			"i Completed 0, j " + waits + ", m " + waits, "i Completed 0, j " + waits + ", m " + waits},
		{"the record of the first of two is lost while the second ran", []func(*Input){i, j,
			instance("j", 0, observed.Exited, 143)}, "i " + unknown + ", j Error 143, m " + waits,
			"i " + unknown + ", j Error 143, m " + waits},
		{"the record of the one that ran is lost", []func(*Input){i, j,
			knownInit(corev1.ContainerStatus{Name: "i", State: running})},
			"i " + unknown + ", j " + waits + ", m " + waits, "i " + unknown + ", j " + waits + ", m " + waits},
		{"the last has ended well", []func(*Input){i, ran}, "i Completed 0, m " + unknown,
			"i Completed 0, m " + unknown},
		{"the last ended well before the API was told of another start", []func(*Input){i,
			knownInit(corev1.ContainerStatus{Name: "i", State: terminated("i0", 0), Ready: true})},
			"i Error 0, m " + unknown, "i Error 0, m " + unknown},
		{"the last has failed", []func(*Input){i, instance("i", 0, observed.Exited, 1)}, "i Error 1, m " + waits,
			"i Error 1, m " + waits},
		{"a sidecar had started", []func(*Input){sidecar("s"), instance("s", 0, observed.Exited, 143),
			reported(corev1.ConditionTrue)}, "s Error 143, m " + unknown, "s Error 143, m " + unknown},
		{"a sidecar had not started", []func(*Input){sidecar("s"), instance("s", 0, observed.Exited, 143),
			reported(corev1.ConditionFalse)}, "s Error 143, m " + waits, "s Error 143, m " + waits},
		{"a main container had begun, by the API alone", []func(*Input){i,
			stored(corev1.ContainerStatus{Name: "m", LastTerminationState: terminated("m0", 1),
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}})},
			"i ContainerCreating, m " + unknown, "i ContainerCreating, m " + unknown},
		{"a container that was added ran, and its record is lost", []func(*Input){instance("m", 0, observed.Exited, 0),
			ephemeral, func(in *Input) {
				in.Pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "e", State: running}}
			}}, "m Completed 0, e " + unknown, "m Completed 0, e " + unknown},
		{"a container that was added never ran", []func(*Input){instance("m", 0, observed.Exited, 0), ephemeral},
			"m Completed 0, e ContainerCreating", "m Completed 0, e ContainerCreating"},
	} {
		fails := plan(func(p *podstate.Plan) { p.Outcome = &podstate.Outcome{Reason: "OutOfcpu"} })
		for way, end := range map[string]struct {
			input []func(*Input)
			want  string
		}{
			"deleted": {[]func(*Input){ended(podstate.Terminate)}, row.deleted},
			"failed":  {[]func(*Input){ended(podstate.Finish), fails}, row.failed},
		} {
			in := with(append(row.pod, end.input...)...)
			out := Compute(in)
			if got := states(out); got != end.want {
				t.Errorf("%s, %s: %q, want %q", row.name, way, got, end.want)
			}
			// A later computation from nothing but the API's status gives the same.
			in.Pod.Status, in.Plan.Outcome = out, nil
			if again := Compute(in); !reflect.DeepEqual(again, out) {
				t.Errorf("%s, %s: computed again\n%+v\nfirst\n%+v", row.name, way, again, out)
			}
		}
	}
}

// The end of a container whose record the runtime loses while its Pod runs is unknown, and the API keeps that.
func TestLostWhileThePodRuns(t *testing.T) {
	in := with(stored(corev1.ContainerStatus{Name: "m", ContainerID: "containerd://m4", RestartCount: 4,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}))
	for range 2 {
		in.Pod.Status = Compute(in)
		got := in.Pod.Status.ContainerStatuses[0]
		if describe(got.State) != "ContainerCreating" || got.LastTerminationState.Terminated == nil ||
			got.LastTerminationState.Terminated.ContainerID != "containerd://m4" {
			t.Errorf("%q after %q of %+v", describe(got.State), describe(got.LastTerminationState),
				got.LastTerminationState.Terminated)
		}
	}
}
