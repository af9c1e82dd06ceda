package status

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// stored adds the API's status of a container.
func stored(s corev1.ContainerStatus) func(*Input) {
	return func(in *Input) { in.Pod.Status.ContainerStatuses = append(in.Pod.Status.ContainerStatuses, s) }
}

func terminated(id string, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://" + id,
		Reason: "Error", ExitCode: code}}
}

// POD-083: how the previous instance ended comes from the runtime or, once that has dropped it, from the API.
func TestLastState(t *testing.T) {
	up := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, row := range []struct {
		name  string
		input []func(*Input)
		want  string
	}{
		{"the newest of two earlier ones", []func(*Input){instance("m", 0, observed.Exited, 1),
			instance("m", 1, observed.Exited, 2), instance("m", 2, observed.Running)}, "Error 2"},
		{"the one before the one that ended", []func(*Input){instance("m", 0, observed.Exited, 1),
			instance("m", 1, observed.Exited, 2)}, "Error 1"},
		{"the one that ended, while the next is waited for", []func(*Input){instance("m", 0, observed.Exited, 1),
			instance("m", 1, observed.Exited, 2), waits("m", "CrashLoopBackOff")}, "Error 2"},
		{"none of another container", []func(*Input){sidecar("s"), instance("s", 0, observed.Exited, 9),
			instance("m", 1, observed.Running)}, ""},
		{"none that has not ended", []func(*Input){instance("m", 0, observed.Unknown),
			instance("m", 1, observed.Running)}, ""},
		{"dropped after the API has heard of its end", []func(*Input){instance("m", 2, observed.Running),
			stored(corev1.ContainerStatus{Name: "m", State: terminated("m1", 3)})}, "Error 3"},
		{"dropped, and the API has heard of an earlier end too", []func(*Input){instance("m", 2, observed.Running),
			stored(corev1.ContainerStatus{Name: "m", State: terminated("m1", 3),
				LastTerminationState: terminated("m0", 4)})}, "Error 3"},
		{"dropped, and the API knows the present one", []func(*Input){instance("m", 2, observed.Running),
			stored(corev1.ContainerStatus{Name: "m", State: up, LastTerminationState: terminated("m1", 4)})},
			"Error 4"},
		{"the present one's own end is no earlier one", []func(*Input){instance("m", 2, observed.Exited, 5),
			stored(corev1.ContainerStatus{Name: "m", State: terminated("m2", 5),
				LastTerminationState: terminated("m1", 4)})}, "Error 4"},
		{"the first instance has none before it", []func(*Input){instance("m", 0, observed.Running),
			stored(corev1.ContainerStatus{Name: "m", LastTerminationState: terminated("x", 4)})}, ""},
		{"another container's is not this one's", []func(*Input){instance("m", 1, observed.Running),
			stored(corev1.ContainerStatus{Name: "n", LastTerminationState: terminated("n0", 4)})}, ""},
	} {
		if got := describe(Compute(with(row.input...)).ContainerStatuses[0].LastTerminationState); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// A container without an instance in the runtime waits, unless its Pod has ended: then its end is unknown.
func TestMissing(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	stopping := plan(func(p *podstate.Plan) { p.Goal = podstate.Terminate })
	for _, row := range []struct {
		name  string
		input []func(*Input)
		want  string
	}{
		{"never begun", nil, "ContainerCreating"},
		{"its image cannot be had", []func(*Input){waits("m", "ErrImagePull")}, "ErrImagePull"},
		{"it ran, and runs again", []func(*Input){stored(corev1.ContainerStatus{Name: "m", State: running})},
			"ContainerCreating"},
		{"it ended", []func(*Input){stored(corev1.ContainerStatus{Name: "m", State: terminated("m0", 7)})}, "Error 7"},
		{"it ended, and its Pod too", []func(*Input){stored(corev1.ContainerStatus{Name: "m",
			State: terminated("m0", 7)}), ended(podstate.Terminate)}, "Error 7"},
		{"it ran, and its Pod is ending", []func(*Input){stored(corev1.ContainerStatus{Name: "m", State: running}),
			stopping}, "ContainerStatusUnknown 137"},
		{"never begun, and its Pod is ending", []func(*Input){stopping}, "ContainerCreating"},
		{"it ran, and its Pod has finished", []func(*Input){stored(corev1.ContainerStatus{Name: "m",
			State: running}), ended(podstate.Finish)}, "ContainerStatusUnknown 137"},
	} {
		if got := describe(Compute(with(row.input...)).ContainerStatuses[0].State); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	was := corev1.ContainerStatus{Name: "m", RestartCount: 4, ContainerID: "containerd://m4", ImageID: "sha256:2",
		LastTerminationState: terminated("m3", 1), State: running}
	got := Compute(with(stored(was))).ContainerStatuses[0]
	if got.RestartCount != 4 || got.ContainerID != was.ContainerID || got.ImageID != was.ImageID ||
		describe(got.LastTerminationState) != "ContainerStatusUnknown 137" || got.Image != "image:1" || got.Ready {
		t.Errorf("what the API knew is lost: %+v", got)
	}
	in := with(stored(corev1.ContainerStatus{Name: "m", State: terminated("m0", 7)}))
	Compute(in).ContainerStatuses[0].State.Terminated.ExitCode = 9
	if code := in.Pod.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 7 {
		t.Errorf("the new status shares its state with the old one: %d", code)
	}
}

// POD-219: while nothing is wrong, a container waits for the init containers until a main one has begun, and then
// for its own creation.
func TestWaiting(t *testing.T) {
	second := func(in *Input) {
		in.Pod.Spec.Containers = append(in.Pod.Spec.Containers, corev1.Container{Name: "n"})
	}
	for _, row := range []struct {
		name  string
		input []func(*Input)
		want  string
	}{
		{"no init containers", []func(*Input){second}, "ContainerCreating"},
		{"init containers", []func(*Input){second, initC(corev1.Container{Name: "i"})}, "PodInitializing"},
		{"init containers, and the other runs", []func(*Input){second, initC(corev1.Container{Name: "i"}),
			instance("m", 0, observed.Running)}, "ContainerCreating"},
		{"init containers, and the other has ended", []func(*Input){second, initC(corev1.Container{Name: "i"}),
			instance("m", 0, observed.Exited, 1)}, "ContainerCreating"},
		{"init containers, and the other is made and not begun", []func(*Input){second,
			initC(corev1.Container{Name: "i"}), instance("m", 0, observed.Created)}, "PodInitializing"},
		{"init containers, and one of them runs", []func(*Input){second, initC(corev1.Container{Name: "i"}),
			instance("i", 0, observed.Running)}, "PodInitializing"},
		{"it is made and not begun", []func(*Input){second, instance("n", 0, observed.Created)}, "ContainerCreating"},
		{"nobody knows what it does", []func(*Input){second, instance("n", 0, observed.Unknown)}, "ContainerCreating"},
	} {
		if got := describe(Compute(with(row.input...)).ContainerStatuses[1].State); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// POD-142, POD-143: started and ready come from the probes of the running instance; without a result, a container
// without such a probe is both.
func TestStartedAndReady(t *testing.T) {
	both := podstate.Probe{Started: true, Ready: true}
	says := func(id string, p podstate.Probe) func(*Input) { return func(in *Input) { in.Probes[id] = p } }
	for _, row := range []struct {
		name           string
		input          []func(*Input)
		started, ready bool
	}{
		{"nothing runs", nil, false, false},
		{"it runs", []func(*Input){instance("m", 0, observed.Running)}, true, true},
		{"it has ended", []func(*Input){instance("m", 0, observed.Exited, 0)}, false, false},
		{"it has ended, whatever the probes said", []func(*Input){instance("m", 0, observed.Exited, 0),
			says("m0", both)}, false, false},
		{"a startup probe that has not answered", []func(*Input){instance("m", 0, observed.Running), probed}, false,
			false},
		{"a startup probe that has", []func(*Input){instance("m", 0, observed.Running), probed, says("m0", both)}, true,
			true},
		{"a startup probe that fails", []func(*Input){instance("m", 0, observed.Running), probed,
			says("m0", podstate.Probe{Ready: true})}, false, false},
		{"a readiness probe that fails", []func(*Input){instance("m", 0, observed.Running), readinessProbe,
			says("m0", podstate.Probe{Started: true})}, true, false},
		{"a verdict without such a probe", []func(*Input){instance("m", 0, observed.Running),
			says("m0", podstate.Probe{})}, true, true},
		{"a verdict of the instance before", []func(*Input){instance("m", 1, observed.Running), readinessProbe,
			says("m0", both)}, true, false},
	} {
		s := Compute(with(row.input...)).ContainerStatuses[0]
		if s.Started == nil || *s.Started != row.started || s.Ready != row.ready {
			t.Errorf("%s: started %v, ready %v; want %v, %v", row.name, ptr.Deref(s.Started, false), s.Ready,
				row.started, row.ready)
		}
	}
	for code, want := range map[int32]bool{0: true, 1: false} {
		in := with(initC(corev1.Container{Name: "i"}), instance("i", 0, observed.Exited, code))
		if s := Compute(in).InitContainerStatuses[0]; s.Ready != want || *s.Started {
			t.Errorf("an init container that ended with %d is ready: %v, started: %v", code, s.Ready, *s.Started)
		}
	}
	running := Compute(with(initC(corev1.Container{Name: "i"}), instance("i", 0, observed.Running), ephemeral,
		instance("e", 0, observed.Running)))
	if s := running.InitContainerStatuses[0]; s.Ready || !*s.Started {
		t.Errorf("an init container that runs: %+v", s)
	}
	if s := running.EphemeralContainerStatuses[0]; s.Ready || s.Started != nil {
		t.Errorf("an ephemeral container is neither started nor ready: %+v", s)
	}
}

// The image is the one that the runtime used; before that, the requested one.
func TestImageAndStart(t *testing.T) {
	image := func(name string) func(*Input) {
		return func(in *Input) { in.Observed.Containers[0].Image = name }
	}
	for name, want := range map[string]string{"": "image:1",
		"registry.example.com/image:1": "registry.example.com/image:1"} {
		s := Compute(with(instance("m", 0, observed.Running), image(name))).ContainerStatuses[0]
		if s.Image != want || s.ImageID != "sha256:1" || s.ContainerID != "containerd://m0" {
			t.Errorf("image %q: %q with ID %q of %q", name, s.Image, s.ImageID, s.ContainerID)
		}
	}
	began := with(func(in *Input) { in.StartedAt = now.Add(1500 * time.Millisecond) })
	if got := Compute(began).StartTime; got == nil || !got.Time.Equal(now.Add(time.Second)) {
		t.Errorf("it began at %v, want whole seconds", got)
	}
	early := metav1.NewTime(now.Add(-time.Hour))
	began.Pod.Status.StartTime = &early
	if got := Compute(began).StartTime; !got.Equal(&early) {
		t.Errorf("it began at %v, and before that at %v", got, early)
	}
	end := Compute(with(instance("m", 0, observed.Exited, 0),
		ended(podstate.Finish))).ContainerStatuses[0].State.Terminated
	if end.ContainerID != "containerd://m0" || !end.StartedAt.Time.Equal(now.Add(-10*time.Second)) ||
		!end.FinishedAt.Time.Equal(now.Add(-time.Second)) {
		t.Errorf("it ended as %+v", end)
	}
}

// The status of a container's devices is reported while it has them; the last report stays when its Pod has ended.
func TestDevices(t *testing.T) {
	is := func(health corev1.ResourceHealthStatus) []corev1.ResourceStatus {
		return []corev1.ResourceStatus{{Name: "example.com/led",
			Resources: []corev1.ResourceHealth{{ResourceID: "a", Health: health}}}}
	}
	told := stored(corev1.ContainerStatus{Name: "m", AllocatedResourcesStatus: is("Healthy")})
	now := func(in *Input) {
		in.Devices = map[string][]corev1.ResourceStatus{"m": is("Unhealthy"), "s": is("Unknown")}
	}
	ended := func(in *Input) { in.Plan.Goal, in.Plan.Stopped = podstate.Terminate, true }
	for name, row := range map[string]struct {
		input []func(*Input)
		want  corev1.ResourceHealthStatus
	}{
		"none":                 {[]func(*Input){instance("m", 0, observed.Running)}, ""},
		"it runs":              {[]func(*Input){instance("m", 0, observed.Running), told, now}, "Unhealthy"},
		"it is yet to run":     {[]func(*Input){now}, "Unhealthy"},
		"it has them no more":  {[]func(*Input){instance("m", 0, observed.Running), told}, ""},
		"its Pod has ended":    {[]func(*Input){instance("m", 0, observed.Exited, 1), told, ended}, "Healthy"},
		"ended, and never had": {[]func(*Input){instance("m", 0, observed.Exited, 1), ended}, ""},
	} {
		got := Compute(with(row.input...)).ContainerStatuses[0].AllocatedResourcesStatus
		if row.want == "" && got != nil || row.want != "" && (len(got) != 1 || got[0].Resources[0].Health != row.want) {
			t.Errorf("%s: %v, want %q", name, got, row.want)
		}
	}
	out := Compute(with(sidecar("s"), instance("s", 0, observed.Running), now))
	if got := out.InitContainerStatuses[0].AllocatedResourcesStatus; len(got) != 1 {
		t.Errorf("a sidecar: %v", got)
	}
}
