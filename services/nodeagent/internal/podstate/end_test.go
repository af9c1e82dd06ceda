package podstate

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/observed"
)

func deadlineSeconds(s int64) func(*Input) {
	return func(in *Input) { in.Pod.Spec.ActiveDeadlineSeconds = ptr.To(s) }
}

func stopped(id string) func(*Input) {
	return func(in *Input) { in.Memory.SandboxesStopped[id] = true }
}

func TestFinish(t *testing.T) {
	s0, never := sandbox("s0", 0, true), policy(corev1.RestartPolicyNever)
	for _, r := range []row{
		{name: "POD-075 POD-095 all ended", input: options(never, mainC("a"), mainC("b"), s0, instance("a", 0, exited),
			instance("b", 0, exited, exit(1))),
			want: []string{"StopSandbox s0"}, goal: Finish},
		{name: "one still runs", input: options(never, mainC("a"), mainC("b"), s0, instance("a", 0, exited),
			instance("b", 0, running)), goal: Run},
		{name: "POD-249 sidecars end when the main container has", input: options(never, sidecar("s"), sidecar("t"),
			mainC("a"), s0,
			instance("s", 0, running), instance("t", 0, running), instance("a", 0, exited)),
			want: []string{"StopContainer t#0 in 30s"}, goal: Finish},
		{name: "what it used is freed, containers stay for their logs", input: options(never, mainC("a"),
			sandbox("s0", 0, false), stopped("s0"), instance("a", 0, exited)),
			want: []string{"Release volumes"}, goal: Finish},
		{name: "what it used goes in the reverse of its order", input: options(never, mainC("a"),
			sandbox("s0", 0, false), stopped("s0"),
			func(in *Input) { in.Memory.Released["volumes"] = true }, instance("a", 0, exited)),
			want: []string{"Release folders"}, goal: Finish},
		{name: "a step whose take-down failed waits, and those before it too", input: options(never, mainC("a"),
			sandbox("s0", 0, false), stopped("s0"),
			fault("release/volumes", "FailedKillPod", 3, time.Second), instance("a", 0, exited)), goal: Finish,
			wake: 3 * time.Second},
		{name: "and that is all", input: options(never, mainC("a"), sandbox("s0", 0, false), stopped("s0"), released,
			instance("a", 0, exited)), goal: Finish},
		{name: "SAF-122 POD-076 a terminal Pod never starts again", input: options(mainC("a"), phase(corev1.PodFailed)),
			want: []string{"Release volumes"}, goal: Finish},
		{name: "POD-206 JOB-119 the deadline stops an init container", input: options(deadlineSeconds(60), initC("i"),
			mainC("m"), s0, instance("i", 0, running)),
			want: []string{"StopContainer i#0 in 30s"}, goal: Finish},
		{name: "POD-207 the deadline stops a healthy Pod", input: options(deadlineSeconds(60), mainC("m"), s0,
			instance("m", 0, running)),
			want: []string{"StopContainer m#0 in 30s"}, goal: Finish},
		{name: "POD-207 not before it passes", input: options(deadlineSeconds(61), mainC("m"), s0,
			instance("m", 0, running)), goal: Run, wake: time.Second},
		{name: "a rejected Pod never starts",
			input: options(mainC("m"), func(in *Input) { in.Memory.Rejection = &Outcome{Reason: "OutOfcpu"} }),
			want:  []string{"Release volumes"}, goal: Finish},
	} {
		t.Run(r.name, r.run)
	}
	if o := Decide(build(deadlineSeconds(60), mainC("m"))).Outcome; o == nil || o.Reason != "DeadlineExceeded" {
		t.Errorf("outcome after the deadline = %+v, want DeadlineExceeded", o)
	}
}

func TestTerminate(t *testing.T) {
	s0 := sandbox("s0", 0, true)
	down := sandbox("s0", 0, false)
	for _, r := range []row{
		{name: "POD-154 SAF-131 SCH-050 all main containers at once with the full period",
			input: options(mainC("a"), mainC("b", preStop), s0, deleted(30),
				instance("a", 0, running), instance("b", 0, running)), want: []string{"StopContainer a#0 in 30s",
				"StopContainer b#0 in 30s +hook"}, goal: Terminate},
		{name: "POD-155 no hook with a period of 0", input: options(mainC("b", preStop), s0, deleted(0),
			instance("b", 0, running)),
			want: []string{"StopContainer b#0 in 0s"}},
		{name: "the period of the request holds", input: options(mainC("a"), s0, deleted(5), instance("a", 0, running)),
			want: []string{"StopContainer a#0 in 5s"}},
		{name: "SAF-129 a shorter one brings the kill forward", input: options(mainC("a"), s0, deleted(5),
			ending(3*time.Second, 27*time.Second),
			op("stop/a#0", 27*time.Second), instance("a", 0, running)), want: []string{"StopContainer a#0 in 2s"}},
		{name: "a longer one changes nothing", input: options(mainC("a"), s0, deleted(60),
			ending(3*time.Second, 27*time.Second),
			op("stop/a#0", 27*time.Second), instance("a", 0, running))},
		{name: "POD-169 SAF-140 after a restart the full period again", input: options(mainC("a"), s0, deleted(30),
			instance("a", 0, running),
			func(in *Input) { in.Pod.DeletionTimestamp.Time = now.Add(-time.Hour) }),
			want: []string{"StopContainer a#0 in 30s"}},
		{name: "POD-243 sidecars wait", input: options(sidecar("s"), mainC("a"), s0, deleted(30),
			ending(time.Second, 29*time.Second),
			op("stop/a#0", 29*time.Second), instance("s", 0, running), instance("a", 0, running)),
			wake: 29 * time.Second},
		{name: "POD-243 and end in reverse order", input: options(sidecar("s"), sidecar("t"), mainC("a"), s0,
			deleted(30), ending(9*time.Second, 21*time.Second),
			instance("s", 0, running), instance("t", 0, running), instance("a", 0, exited)),
			want: []string{"StopContainer t#0 in 21s"}},
		{name: "POD-244 past the deadline all at once", input: options(sidecar("s"), mainC("a"), s0, deleted(30),
			ending(30*time.Second, 0),
			op("stop/a#0", 0), instance("s", 0, running), instance("a", 0, running)),
			want: []string{"StopContainer s#0 in 0s"}},
		{name: "a terminating Pod restarts nothing", input: options(mainC("a"), mainC("b"), s0, deleted(30),
			instance("a", 0, exited, exit(1)), instance("b", 0, running)),
			want: []string{"StopContainer b#0 in 30s"}},
		{name: "a deletion without a period has the Pod's own", input: options(mainC("a"), s0, deleted(5),
			func(in *Input) { in.Pod.DeletionGracePeriodSeconds = nil }, instance("a", 0, running)),
			want: []string{"StopContainer a#0 in 30s"}},
		{name: "a sandbox that has died is stopped too: its network may be there", input: options(mainC("a"), down,
			deleted(30), instance("a", 0, exited)), want: []string{"StopSandbox s0"}},
		{name: "so is one that is ready again", input: options(mainC("a"), s0, stopped("s0"), deleted(30),
			instance("a", 0, exited)), want: []string{"StopSandbox s0"}},
		{name: "POD-165 then the sandbox", input: options(mainC("a"), s0, deleted(30), instance("a", 0, exited)),
			want: []string{"StopSandbox s0"}},
		{name: "SAF-142 then what it used", input: options(mainC("a"), down, stopped("s0"), deleted(30),
			instance("a", 0, exited)), want: []string{"Release volumes"}},
		{name: "SAF-138 POD-078 nothing is removed before the API has the final status",
			input: options(mainC("a"), down, stopped("s0"), released, deleted(30),
				phase(corev1.PodRunning), instance("a", 0, exited))},
		{name: "then the rest of it", input: options(mainC("a"), down, stopped("s0"), released, deleted(30),
			phase(corev1.PodSucceeded), instance("a", 0, exited)),
			want: []string{"RemoveSandbox s0"}},
		{name: "POD-167 SAF-143 last the object", input: options(mainC("a"), released, deleted(30),
			phase(corev1.PodSucceeded)), want: []string{"DeletePod"}},
		{name: "POD-172 SAF-146 a force-deleted Pod gets the least period", input: options(mainC("a"), s0, removed,
			instance("a", 0, running)),
			want: []string{"StopContainer a#0 in 2s"}},
		{name: "and no status is waited for", input: options(mainC("a"), down, stopped("s0"), released, removed,
			instance("a", 0, exited)),
			want: []string{"RemoveSandbox s0"}},
		{name: "SAF-167 what the spec does not know is stopped too",
			input: options(s0, removed, instance("a", 0, running)), want: []string{"StopContainer a#0 in 2s"}},
		{name: "a start under way is called off and waited for", input: options(mainC("a"), s0, deleted(30),
			op("start/a"), instance("a", 0, created))},
	} {
		t.Run(r.name, r.run)
	}
}

func TestTerminateCallsOffStarts(t *testing.T) {
	plan := Decide(build(mainC("a"), sandbox("s0", 0, true), deleted(30), op("start/a"), op("hook/b#0")))
	if len(plan.Cancel) != 2 || plan.Stopped {
		t.Errorf("cancel %v, stopped %v; want both operations called off and the Pod not stopped", plan.Cancel,
			plan.Stopped)
	}
}

// SAF-136: the hook of a process that ends early is not waited for.
func TestStopOfWhatHasEndedIsCalledOff(t *testing.T) {
	plan := Decide(build(mainC("a", preStop), sandbox("s0", 0, true), deleted(30), op("stop/a#0", 20*time.Second),
		op("stop/b#0"), op("remove/c#0"), op("remove/d#0"), op("remove/e#0"), op("remove/f#0"),
		instance("a", 0, exited), instance("b", 0, running)))
	if len(plan.Cancel) != 1 || plan.Cancel[0] != key("stop/a#0") {
		t.Errorf("cancels %v, want the stop", plan.Cancel)
	}
}

// SAF-141: the Pod is not stopped, let alone deleted, while an instance is in an unknown state.
func TestUnknownHoldsDeletion(t *testing.T) {
	plan := Decide(build(mainC("a"), released, deleted(30), phase(corev1.PodFailed), op("stop/a#0", 0),
		instance("a", 0, unknown)))
	if plan.Stopped || plan.Gone || len(plan.Actions) > 0 {
		t.Errorf("stopped %v, gone %v, actions %v; want to wait for the instance", plan.Stopped, plan.Gone,
			show(plan.Actions))
	}
}

// The plan wakes at the deadline for the sidecars that wait for it, and not for containers that are being stopped
// anyway.
func TestWakesAtTheDeadline(t *testing.T) {
	for name, r := range map[string]struct {
		input []func(*Input)
		want  time.Duration
	}{
		"before it": {options(mainC("a"), deleted(30), ending(time.Second, 29*time.Second), op("stop/a#0",
			29*time.Second)), 29 * time.Second},
		"at it": {options(mainC("a"), deleted(30), ending(30*time.Second, 0), op("stop/a#0", 0)), 0},
		"after it": {options(mainC("a"), deleted(30), ending(31*time.Second, -time.Second), op("stop/a#0",
			-time.Second)), 0},
		"of what the spec does not know": {options(removed), 0},
	} {
		got := time.Duration(0)
		if wake := Decide(build(append(r.input, sandbox("s0", 0, true), instance("a", 0, running))...)).Wake; !wake.
			IsZero() {
			got = wake.Sub(now)
		}
		if got != r.want {
			t.Errorf("%s: wakes in %v, want %v", name, got, r.want)
		}
	}
}

// POD-207: a Pod that has ended or is being deleted does not fail for its deadline in addition.
func TestTheDeadlineFailsOnlyWhatRuns(t *testing.T) {
	for name, edit := range map[string]func(*Input){
		"succeeded": phase(corev1.PodSucceeded), "failed": phase(corev1.PodFailed), "being deleted": deleted(30),
	} {
		if o := Decide(build(deadlineSeconds(1), mainC("m"), edit)).Outcome; o != nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestKeysAsPeopleReadThem(t *testing.T) {
	for want, key := range map[string]Key{
		"delete": {Kind: DeletePod}, "sandbox/create": {Kind: CreateSandbox}, "start/web": StartKey("web"),
	} {
		if got := key.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestGone(t *testing.T) {
	if !Decide(build(mainC("a"), released, removed)).Gone {
		t.Error("nothing is left, but the Pod is not gone")
	}
	if Decide(build(mainC("a"), released, removed, op("stop/a#0"))).Gone {
		t.Error("an operation is in flight, but the Pod is gone")
	}
}

// After a failure the next try does more than call the runtime: it first ends the processes without it. A stop is
// forced only when its time is over. A created instance that cannot be removed is not waited for:
// TestCreatedThatStays.
func TestWhatFailsIsForced(t *testing.T) {
	s0 := sandbox("s0", 0, true)
	for name, r := range map[string]struct {
		input []func(*Input)
		key   string
	}{
		"a created instance of a Pod that runs": {options(s0, instance("m", 0, observed.Created)), "remove/m#0"},
		"a created instance of a Pod that ends": {options(s0, deleted(0), instance("m", 0, observed.Created)),
			"remove/m#0"},
		"an instance without a sandbox": {options(released, removed, instance("m", 0, exited)),
			"remove/m#0"},
		"a sandbox": {options(sandbox("s0", 0, false), stopped("s0"), released, removed,
			instance("m", 0, exited)), "sandbox/remove/s0"},
		"an instance whose time to stop is over": {options(s0, deleted(0), instance("m", 0, running)), "stop/m#0"},
		"an instance in a state that nobody knows": {options(s0, deleted(0), instance("m", 0, observed.Unknown)),
			"stop/m#0"},
	} {
		for count, force := range map[int]bool{0: false, 1: true, maxRemovals - 1: true, 7: true} {
			if count >= maxRemovals && strings.HasPrefix(name, "a created") {
				continue
			}
			input := append(options(mainC("m")), r.input...)
			if count > 0 {
				input = append(input, fault(r.key, "FailedKillPod", count, time.Hour))
			}
			plan := Decide(build(input...))
			if len(plan.Actions) != 1 || plan.Actions[0].Key != key(r.key) || plan.Actions[0].Force != force {
				t.Errorf("%s after %d failures: %+v, want only %s with force %v", name, count, plan.Actions, r.key,
					force)
			}
		}
	}
	plan := Decide(build(mainC("m"), s0, deleted(30), instance("m", 0, running), fault("stop/m#0", "FailedKillPod", 1,
		time.Hour)))
	if len(plan.Actions) != 1 || plan.Actions[0].Force {
		t.Errorf("with time left: %+v", plan.Actions)
	}
}

// An instance whose start was interrupted is removed with force at once, before its sandbox is stopped. One that three
// tries cannot remove holds up neither the next instance nor the end of the Pod.
func TestInterruptedStarts(t *testing.T) {
	s0, cut := sandbox("s0", 0, true), instance("m", 0, exited, exit(128), neverStarted)
	failed := func(count int) func(*Input) { return fault("remove/m#0", "FailedKillPod", count, time.Hour) }
	for _, r := range []row{
		{name: "it is removed", input: options(mainC("m"), s0, cut), want: []string{"RemoveContainer m#0"}},
		{name: "again", input: options(mainC("m"), s0, cut, failed(2)), want: []string{"RemoveContainer m#0"}},
		{name: "after the third failure the next one starts", input: options(mainC("m"), s0, cut, failed(3)),
			want: []string{"StartContainer m#1"}, goal: Run},
		{name: "also where none is restarted: nothing has run", goal: Run,
			input: options(policy(corev1.RestartPolicyNever), mainC("m"), s0, cut, failed(3)),
			want:  []string{"StartContainer m#1"}},
		{name: "also an init container", goal: Run, input: options(policy(corev1.RestartPolicyNever), initC("m"),
			mainC("n"), s0, cut, failed(3)), want: []string{"StartContainer m#1"}},
		{name: "a second one like it waits as after a crash", waiting: map[string]string{"m": "CrashLoopBackOff"},
			input: options(mainC("m"), s0, instance("m", 1, exited, exit(128), neverStarted),
				fault("remove/m#1", "FailedKillPod", 3, time.Hour)), wake: 9 * time.Second},
		{name: "at the end of the Pod it goes before the sandbox", input: options(mainC("m"), s0, deleted(30), cut),
			want: []string{"RemoveContainer m#0"}, goal: Terminate},
		{name: "and is waited for", input: options(mainC("m"), s0, deleted(30), cut, op("remove/m#0"))},
		{name: "between two tries too", input: options(mainC("m"), s0, deleted(30), cut,
			fault("remove/m#0", "FailedKillPod", 2, time.Second)), wake: time.Second},
		{name: "but not for ever", input: options(mainC("m"), s0, deleted(30), cut, failed(3)),
			want: []string{"StopSandbox s0"}},
		{name: "a start that failed before the agent's eyes is no interrupted one", input: options(mainC("m"), s0,
			deleted(30), cut, fault("start/m", RunContainerError, 1, time.Hour)), want: []string{"StopSandbox s0"}},
	} {
		t.Run(r.name, r.run)
	}
	if plan := Decide(build(mainC("m"), s0, cut)); len(plan.Actions) != 1 || !plan.Actions[0].Force {
		t.Errorf("the first removal is not forced: %+v", plan.Actions)
	}
}
