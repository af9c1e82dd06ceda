package podstate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/observed"
)

const (
	created = observed.Created
	running = observed.Running
	exited  = observed.Exited
	unknown = observed.Unknown
)

func neverStarted(c *observed.Container) { c.StartedAt = time.Time{} }

type row struct {
	name  string
	input []func(*Input)
	want  []string
	// wake is the expected time until the plan wakes; 0 is not checked.
	wake    time.Duration
	waiting map[string]string
	goal    Goal
}

func (r row) run(t *testing.T) {
	plan := Decide(build(r.input...))
	check(t, plan, r.want...)
	if r.wake != 0 && plan.Wake.Sub(now) != r.wake {
		t.Errorf("wakes in %v, want %v", plan.Wake.Sub(now), r.wake)
	}
	if r.goal != "" && plan.Goal != r.goal {
		t.Errorf("goal %s, want %s", plan.Goal, r.goal)
	}
	for name, reason := range r.waiting {
		if got := plan.Waiting[name].Reason; got != reason {
			t.Errorf("%s waits for %q, want %q", name, got, reason)
		}
	}
}

func held(in *Input) { in.Hold = "waits" }

func options(o ...func(*Input)) []func(*Input) { return o }

func TestBringUp(t *testing.T) {
	s0 := sandbox("s0", 0, true)
	for _, r := range []row{
		{name: "POD-126 first what it stands on", input: options(mainC("m"), unprepared),
			want: []string{"Prepare folders"}},
		{name: "nothing while another Pod of its name stands", input: options(initC("i"), mainC("m"), unprepared, held),
			waiting: map[string]string{"i": "ContainerCreating", "m": "ContainerCreating"}},
		{name: "nor another sandbox", input: options(mainC("m"), sandbox("s0", 0, false), held),
			waiting: map[string]string{"m": "ContainerCreating"}},
		{name: "but it ends meanwhile", input: options(mainC("m"), held, func(in *Input) { in.Removed = true }),
			goal: Terminate, want: []string{"Release volumes"}},
		{name: "one step after the other",
			input: options(mainC("m"), func(in *Input) { delete(in.Memory.Prepared, "volumes") }),
			want:  []string{"Prepare volumes"}},
		{name: "a step in flight is waited for", input: options(mainC("m"), unprepared, op("prepare/folders"))},
		{name: "a step that failed waits, and nothing else happens", input: options(mainC("m"), unprepared,
			fault("prepare/folders", "FailedMount", 3, time.Second)), wake: 3 * time.Second},
		{name: "the fault of one step does not hold up another",
			input: options(mainC("m"), func(in *Input) { delete(in.Memory.Prepared, "folders") },
				fault("prepare/volumes", "FailedMount", 3, time.Second)), want: []string{"Prepare folders"}},
		{name: "POD-126 then the sandbox", input: options(mainC("m")), want: []string{"CreateSandbox #0"}},
		{name: "SAF-120 volumes are brought up to date beside running containers", input: options(mainC("a"), s0,
			instance("a", 0, running),
			func(in *Input) { in.Memory.RefreshAt["volumes"] = now }), want: []string{"Prepare volumes"}},
		{name: "steps are brought up to date in their order", input: options(mainC("a"), s0, instance("a", 0, running),
			func(in *Input) { in.Memory.RefreshAt["volumes"], in.Memory.RefreshAt["folders"] = now, now }),
			want: []string{"Prepare folders"}},
		{name: "SAF-120 when their time has come", input: options(mainC("a"), s0, instance("a", 0, running),
			func(in *Input) { in.Memory.RefreshAt["volumes"] = now.Add(time.Minute) }), wake: time.Minute},
		{name: "one sandbox at a time", input: options(mainC("m"), op("sandbox/create"), sandbox("s0", 0, false))},
		{name: "POD-129 POD-007 then all main containers", input: options(mainC("a"), mainC("b"), s0),
			want: []string{"StartContainer a#0", "StartContainer b#0"}},
		{name: "a start in flight is not repeated", input: options(mainC("a"), mainC("b"), s0, op("start/a")),
			want: []string{"StartContainer b#0"}},
		{name: "all run", input: options(mainC("a"), s0, instance("a", 0, running))},
		{name: "POD-195 no init container before the sandbox", input: options(initC("i"), mainC("m")),
			want: []string{"CreateSandbox #0"}},
		{name: "POD-196 one init container at a time", input: options(initC("i", "j"), mainC("m"), s0),
			want: []string{"StartContainer i#0"}},
		{name: "POD-196 the next waits while one runs", input: options(initC("i", "j"), mainC("m"), s0,
			instance("i", 0, running))},
		{name: "POD-196 the next after success", input: options(initC("i", "j"), mainC("m"), s0,
			instance("i", 0, exited)),
			want: []string{"StartContainer j#0"}},
		{name: "POD-197 main after all", input: options(initC("i", "j"), mainC("m"), mainC("n"), s0,
			instance("i", 0, exited), instance("j", 0, exited)),
			want: []string{"StartContainer m#0", "StartContainer n#0"}},
		{name: "POD-198 POD-199 a failed init container is retried at once the first time",
			input: options(initC("i", "j"), mainC("m"), s0, instance("i", 0, exited, exit(1))),
			want:  []string{"StartContainer i#1"}},
		{name: "POD-198 then with back-off", input: options(initC("i"), mainC("m"), s0,
			instance("i", 1, exited, exit(1))),
			wake: 9 * time.Second, waiting: map[string]string{"i": "CrashLoopBackOff"}},
		{name: "POD-200 init failure under Never fails the Pod", goal: Finish,
			input: options(policy(corev1.RestartPolicyNever), initC("i"), mainC("m"), s0,
				instance("i", 0, exited, exit(1))),
			want: []string{"StopSandbox s0"}},
		{name: "POD-210 a lost init record does not matter once main containers began",
			input: options(initC("i"), mainC("m"), s0, instance("m", 0, running))},
		{name: "POD-210 nor when all of them have ended and are restarted",
			input: options(initC("i"), mainC("m"), s0, instance("m", 0, exited)), want: []string{"StartContainer m#1"}},
		{name: "POD-055 a new image of an init container restarts nothing",
			input: options(initC("i"), mainC("m"), s0,
				instance("i", 0, exited, func(c *observed.Container) { c.Image = "image:0" }),
				instance("m", 0, running))},
		{name: "POD-238 sidecar in sequence", input: options(initC("i"), sidecar("s"), initC("j"), mainC("m"), s0,
			instance("i", 0, exited)),
			want: []string{"StartContainer s#0"}},
		{name: "POD-239 POD-240 a running sidecar lets the next start",
			input: options(sidecar("s"), initC("j"), mainC("m"), s0, instance("s", 0, running)),
			want:  []string{"StartContainer j#0"}},
		{name: "POD-240 not before its startup probe succeeds",
			input: options(sidecar("s", startupProbe), initC("j"), mainC("m"), s0, instance("s", 0, running))},
		{name: "POD-240 and then at once", input: options(sidecar("s", startupProbe), initC("j"), mainC("m"), s0,
			instance("s", 0, running),
			func(in *Input) { in.Probes["s#0"] = Probe{Started: true} }), want: []string{"StartContainer j#0"}},
		{name: "POD-236 POD-237 a sidecar is restarted beside running main containers",
			input: options(sidecar("s"), mainC("m"), s0,
				instance("s", 0, exited, exit(0)), instance("m", 0, running)), want: []string{"StartContainer s#1"}},
		{name: "POD-097 also under Never", input: options(policy(corev1.RestartPolicyNever), sidecar("s"), mainC("m"),
			s0,
			instance("s", 0, exited, exit(0)), instance("m", 0, running)), want: []string{"StartContainer s#1"}},
		{name: "POD-237 a sidecar that is down does not hold up what began after it",
			input: options(sidecar("s"), initC("j"), mainC("m"), s0,
				instance("s", 1, exited, exit(1)), instance("j", 0, exited)), want: []string{"StartContainer m#0"}},
		{name: "SAF-017 an ephemeral container starts although the main one crashed",
			input: options(mainC("m"), ephemeral("e"), s0,
				instance("m", 3, exited, exit(1))), want: []string{"StartContainer e#0"}},
		{name: "SAF-015 POD-253 and is never restarted", input: options(mainC("m"), ephemeral("e"), s0,
			instance("m", 0, running), instance("e", 0, exited, exit(1)))},
	} {
		t.Run(r.name, r.run)
	}
}

func TestRestart(t *testing.T) {
	s0 := sandbox("s0", 0, true)
	for _, r := range []row{
		{name: "POD-093 POD-100 POD-156 first restart at once", input: options(mainC("m"), s0,
			instance("m", 0, exited, exit(1))),
			want: []string{"StartContainer m#1"}},
		{name: "POD-101 second after 10 s", input: options(mainC("m"), s0, instance("m", 1, exited, exit(1))),
			wake: 9 * time.Second, waiting: map[string]string{"m": "CrashLoopBackOff"}},
		{name: "POD-101 and not before", input: options(mainC("m"), s0, instance("m", 1, exited, exit(1),
			ago(20*time.Second, 10*time.Second))),
			want: []string{"StartContainer m#2"}},
		{name: "POD-101 capped", input: options(mainC("m"), s0, instance("m", 40, exited, exit(1))),
			wake: 299 * time.Second},
		{name: "POD-102 a little less than ten minutes of running do not", wake: 5*time.Minute - time.Second,
			input: options(mainC("m"), s0, instance("m", 7, exited, exit(1), ago(10*time.Minute, time.Second)))},
		{name: "POD-102 ten minutes of running begin anew", input: options(mainC("m"), s0,
			instance("m", 7, exited, exit(1), ago(10*time.Minute+time.Second, time.Second))),
			want: []string{"StartContainer m#8"}},
		{name: "POD-102 and the streak counts from there", input: options(mainC("m"), s0,
			instance("m", 8, exited, exit(1)),
			func(in *Input) { in.Memory.Streaks["m"] = 7 }), wake: 9 * time.Second},
		{name: "POD-103 back-off is per container", input: options(mainC("a"), mainC("b"), s0,
			instance("a", 5, exited, exit(1)), instance("b", 0, exited, exit(1))),
			want: []string{"StartContainer b#1"}},
		{name: "POD-094 OnFailure leaves a success", input: options(policy(corev1.RestartPolicyOnFailure), mainC("a"),
			mainC("b"), s0,
			instance("a", 0, exited), instance("b", 0, running)), goal: Run},
		{name: "SAF-089 one container killed leaves the others alone", input: options(mainC("a"), mainC("b"), s0,
			instance("a", 0, exited, exit(137)), instance("b", 0, running)), want: []string{"StartContainer a#1"}},
		{name: "a start that was cut short is undone first", input: options(mainC("m"), s0, instance("m", 0, created)),
			want: []string{"RemoveContainer m#0"}},
		{name: "a start that died with the agent is undone", input: options(mainC("m"), s0,
			instance("m", 0, exited, exit(128), neverStarted)),
			want: []string{"RemoveContainer m#0"}},
		{name: "and fails no Pod", input: options(policy(corev1.RestartPolicyNever), mainC("m"), s0,
			instance("m", 0, exited, exit(128), neverStarted)),
			want: []string{"RemoveContainer m#0"}, goal: Run},
		{name: "POD-095 a start that failed does", input: options(policy(corev1.RestartPolicyNever), mainC("m"), s0,
			instance("m", 0, exited, exit(128), neverStarted), fault("start/m", RunContainerError, 1, time.Second)),
			want: []string{"StopSandbox s0"}, goal: Finish},
		{name: "POD-198 a start that failed is retried", input: options(mainC("m"), s0,
			instance("m", 0, exited, exit(128), neverStarted), fault("start/m", RunContainerError, 1, time.Second)),
			want: []string{"StartContainer m#1"}},
		{name: "SAF-170 an unknown instance is stopped before the next starts", input: options(mainC("m"), s0,
			instance("m", 0, unknown)),
			want: []string{"StopContainer m#0 in 30s"}},
		{name: "an adopted healthy container is left alone", input: options(mainC("m"), s0, instance("m", 4, running))},
		{name: "POD-140 POD-143 a failed probe stops the container", input: options(mainC("m", preStop), s0,
			instance("m", 0, running),
			func(in *Input) {
				in.Probes["m#0"] = Probe{MustStop: &StopReason{Reason: "Unhealthy", Grace: 7 * time.Second}}
			}), want: []string{"StopContainer m#0 in 7s +hook"}},
		{name: "a stop in flight is not prolonged", input: options(mainC("m"), s0, instance("m", 0, running),
			op("stop/m#0", 5*time.Second),
			func(in *Input) {
				in.Probes["m#0"] = Probe{MustStop: &StopReason{Reason: "Unhealthy", Grace: 7 * time.Second}}
			})},
		{name: "a new image restarts the main container", input: options(mainC("m"), s0,
			instance("m", 0, running, func(c *observed.Container) { c.Image = "image:0" })),
			want: []string{"StopContainer m#0 in 30s"}},
		{name: "POD-247 a new image restarts the sidecar alone", input: options(sidecar("s"), mainC("m"), s0,
			instance("s", 0, running, func(c *observed.Container) { c.Image = "image:0" }), instance("m", 0, running)),
			want: []string{"StopContainer s#0 in 30s"}},
		{name: "POD-086 an unfinished postStart hook is run", input: options(mainC("m", postStart), s0,
			instance("m", 0, running)),
			want: []string{"RunPostStart m#0"}},
		{name: "POD-091 a finished hook is not run again", input: options(mainC("m", postStart), s0,
			instance("m", 0, running),
			func(in *Input) { in.Memory.Hooked["m#0"] = true })},
		{name: "the API's restart count goes on where the runtime lost all", input: options(mainC("m"), s0,
			func(in *Input) {
				in.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "m", RestartCount: 4,
					ContainerID: "x://1"}}
			}), want: []string{"StartContainer m#5"}},
	} {
		t.Run(r.name, r.run)
	}
}

func TestSandboxReplaced(t *testing.T) {
	dead := sandbox("s0", 0, false)
	stopped := func(in *Input) { in.Memory.SandboxesStopped["s0"] = true }
	for _, r := range []row{
		{name: "POD-128 the dead one is stopped first", input: options(mainC("m"), dead,
			instance("m", 0, exited, exit(137))),
			want: []string{"StopSandbox s0"}},
		{name: "POD-128 then the next is made", input: options(mainC("m"), dead, stopped,
			instance("m", 0, exited, exit(137))),
			want: []string{"CreateSandbox #1"}},
		{name: "SAF-170 not while an old container may live", input: options(mainC("m"), dead, stopped,
			instance("m", 0, running)),
			want: []string{"StopContainer m#0 in 30s"}},
		{name: "POD-204 POD-208 init containers run again", input: options(initC("i"), mainC("m"), dead, stopped,
			sandbox("s1", 1, true),
			instance("i", 0, exited), instance("m", 0, exited, exit(137))), want: []string{"StartContainer i#1"}},
		{name: "then the main ones", input: options(initC("i"), mainC("m"), dead, stopped, sandbox("s1", 1, true),
			instance("i", 0, exited), instance("i", 1, exited, in("s1")), instance("m", 0, exited, exit(137))),
			want: []string{"StartContainer m#1"}},
		{name: "OnFailure leaves a success of the old sandbox", input: options(policy(corev1.RestartPolicyOnFailure),
			mainC("a"), mainC("b"), dead, stopped,
			sandbox("s1", 1, true), instance("a", 0, exited), instance("b", 0, exited, exit(1))),
			want: []string{"StartContainer b#1"}},
		{name: "Never ends with its sandbox", input: options(policy(corev1.RestartPolicyNever), mainC("a"), mainC("b"),
			dead, stopped,
			instance("a", 0, exited, exit(137))), want: []string{"Release volumes"}, goal: Finish},
		{name: "a container of it that is restarted by its own policy goes on",
			input: options(policy(corev1.RestartPolicyNever), mainC("a"), mainC("b", restarted("OnFailure")),
				dead, stopped, sandbox("s1", 1, true), instance("a", 0, exited, exit(137)),
				instance("b", 0, exited, exit(137))), want: []string{"StartContainer b#1"}},
		{name: "also by a rule", input: options(policy(corev1.RestartPolicyNever), mainC("a"),
			mainC("b", restarted("Never", 137)), dead, stopped, sandbox("s1", 1, true),
			instance("a", 0, exited, exit(137)), instance("b", 0, exited, exit(137))),
			want: []string{"StartContainer b#1"}},
		{name: "by no rule", input: options(policy(corev1.RestartPolicyNever), mainC("a"),
			mainC("b", restarted("Never", 42)), dead, stopped, sandbox("s1", 1, true),
			instance("a", 0, exited, exit(137)), instance("b", 0, exited, exit(137))),
			want: []string{"StopSandbox s1"}, goal: Finish},
		{name: "a sandbox that never worked is no loss", input: options(policy(corev1.RestartPolicyNever), mainC("a"),
			dead, stopped),
			want: []string{"CreateSandbox #1"}},
	} {
		t.Run(r.name, r.run)
	}
}

func TestFaults(t *testing.T) {
	s0 := sandbox("s0", 0, true)
	for _, r := range []row{
		{name: "a failed step waits", input: options(mainC("m"), fault("sandbox/create", "FailedCreatePodSandBox", 3,
			time.Second)), wake: 3 * time.Second},
		{name: "and is tried again", input: options(mainC("m"), fault("sandbox/create", "FailedCreatePodSandBox", 3,
			4*time.Second)),
			want: []string{"CreateSandbox #0"}},
		{name: "DEP-060 a failed pull first shows its error", input: options(mainC("m"), s0,
			fault("start/m", ErrImagePull, 1, time.Second)),
			wake: 2 * time.Second, waiting: map[string]string{"m": "ErrImagePull"}},
		{name: "DEP-058 DEP-060 then the back-off", input: options(mainC("m"), s0, fault("start/m", ErrImagePull, 1,
			4*time.Second)),
			wake: 6 * time.Second, waiting: map[string]string{"m": "ImagePullBackOff"}},
		{name: "DEP-060 and is tried again", input: options(mainC("m"), s0, fault("start/m", ErrImagePull, 1,
			10*time.Second)),
			want: []string{"StartContainer m#0"}},
		{name: "POD-085 a wrong configuration is shown", input: options(mainC("m"), s0,
			fault("start/m", CreateContainerConfigError, 2, time.Second)),
			wake: time.Second, waiting: map[string]string{"m": "CreateContainerConfigError"}},
		{name: "one failing container does not hold up another", input: options(mainC("a"), mainC("b"), s0,
			fault("start/a", ErrImagePull, 1, time.Second)),
			want: []string{"StartContainer b#0"}},
	} {
		t.Run(r.name, r.run)
	}
}

// A running instance shows as not started until its postStart hook has finished.
func TestHooking(t *testing.T) {
	for name, r := range map[string]struct {
		input []func(*Input)
		want  bool
	}{
		"the hook is yet to run": {options(mainC("m", postStart), instance("m", 0, running)), true},
		"it runs":                {options(mainC("m", postStart), instance("m", 0, running), op("start/m")), true},
		"it is done": {options(mainC("m", postStart), instance("m", 0, running),
			func(in *Input) { in.Memory.Hooked["m#0"] = true }), false},
		"there is none":        {options(mainC("m"), instance("m", 0, running)), false},
		"the instance is over": {options(mainC("m", postStart), instance("m", 0, exited)), false},
		"it has not started":   {options(mainC("m", postStart), instance("m", 0, created), op("start/m")), false},
	} {
		plan := Decide(build(append(r.input, sandbox("s0", 0, true))...))
		if got := plan.Hooking["m#0"]; got != r.want {
			t.Errorf("%s: hooking %v, want %v", name, got, r.want)
		}
	}
}

func TestMustStop(t *testing.T) {
	s0 := sandbox("s0", 0, true)
	image := func(ref string) func(*observed.Container) { return func(c *observed.Container) { c.Image = ref } }
	probe := func(p Probe) func(*Input) { return func(in *Input) { in.Probes["m#0"] = p } }
	for _, r := range []row{
		{name: "POD-055 another image beside a healthy probe", input: options(mainC("m"), s0, probe(Probe{Ready: true}),
			instance("m", 0, running, image("image:0"))), want: []string{"StopContainer m#0 in 30s"}},
		{name: "POD-055 also of a sidecar", input: options(sidecar("m"), mainC("n"), s0, instance("n", 0, running),
			instance("m", 0, running, image("image:0"))), want: []string{"StopContainer m#0 in 30s"}},
		{name: "an image that the runtime does not name", input: options(mainC("m"), s0,
			instance("m", 0, running, image("")))},
		{name: "another image of an ephemeral container", input: options(mainC("n"), ephemeral("m"), s0,
			instance("n", 0, running), instance("m", 0, running, image("image:0")))},
		{name: "a probe that has failed for good", input: options(mainC("m"), s0, instance("m", 0, running),
			probe(Probe{MustStop: &StopReason{Reason: "Unhealthy", Grace: 7 * time.Second}})),
			want: []string{"StopContainer m#0 in 7s"}},
		{name: "a probe that has not", input: options(mainC("m"), s0, instance("m", 0, running), probe(Probe{}))},
	} {
		t.Run(r.name, r.run)
	}
}

// If the runtime has lost all instances, the attempts continue after the restarts that the API knows of.
func TestAttemptsGoOn(t *testing.T) {
	status := func(name, id string, restarts int32) func(*Input) {
		return func(in *Input) {
			in.Pod.Status.ContainerStatuses = append(in.Pod.Status.ContainerStatuses,
				corev1.ContainerStatus{Name: name, ContainerID: id, RestartCount: restarts})
		}
	}
	s0 := sandbox("s0", 0, true)
	for _, r := range []row{
		{name: "of its own status", input: options(mainC("m"), s0, status("other", "containerd://1", 7),
			status("m", "containerd://2", 4)), want: []string{"StartContainer m#5"}},
		{name: "not of another's", input: options(mainC("m"), s0, status("other", "containerd://1", 7)),
			want: []string{"StartContainer m#0"}},
		{name: "nor where none has run yet", input: options(mainC("m"), s0, status("m", "", 4)),
			want: []string{"StartContainer m#0"}},
		{name: "the first restart", input: options(mainC("m"), s0, status("m", "containerd://2", 0)),
			want: []string{"StartContainer m#1"}},
		{name: "a count that makes no sense", input: options(mainC("m"), s0, status("m", "containerd://2", -3)),
			want: []string{"StartContainer m#1"}},
	} {
		t.Run(r.name, r.run)
	}
}
