package podstate

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/observed"
)

// forAll gives a container a policy of its own, and a rule that restarts all containers after exit code 42.
func forAll(policy corev1.ContainerRestartPolicy) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.RestartPolicy = &policy
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{42}}}}
	}
}

// initAll is an init container with such a rule, which is not restarted otherwise.
func initAll(name string) func(*Input) {
	return func(in *Input) {
		c := container(name)
		forAll(corev1.ContainerRestartPolicyNever)(&c)
		in.Pod.Spec.InitContainers = append(in.Pod.Spec.InitContainers, c)
	}
}

// anew makes all containers have begun anew after these last attempts, because the named one ended.
func anew(cause string, last map[string]uint32, stopped ...string) func(*Input) {
	return func(in *Input) {
		in.Memory.RestartAll = &RestartAll{Container: cause, ExitCode: 42, Last: last, Stopped: stopped}
	}
}

// A restart of all containers is kept before anything is done about it.
func TestRestartAllBegins(t *testing.T) {
	s0, never := sandbox("s0", 0, true), policy(corev1.RestartPolicyNever)
	own := forAll(corev1.ContainerRestartPolicyNever)
	for _, r := range []struct {
		name       string
		input      []func(*Input)
		want       *RestartAll
		restarting bool
		goal       Goal
		cancel     []Key
	}{
		{name: "a main container that is never restarted else", restarting: true, goal: Run,
			input: options(never, initC("i"), mainC("a", own), mainC("b"), s0, instance("i", 0, exited),
				instance("a", 3, exited, exit(42)), instance("b", 1, running)),
			want: &RestartAll{Container: "a", ExitCode: 42, Last: map[string]uint32{"i": 0, "a": 3, "b": 1},
				Stopped: []string{"b"}}},
		{name: "another exit code", goal: Run, input: options(never, mainC("a", own), mainC("b"), s0,
			instance("a", 0, exited, exit(41)), instance("b", 1, running))},
		{name: "while it runs", goal: Run, input: options(never, mainC("a", own), s0,
			instance("a", 0, running, exit(42)))},
		{name: "the last of a Pod to end keeps it from its end", restarting: true, goal: Run,
			input: options(never, mainC("a", own), mainC("b"), s0, instance("a", 0, exited, exit(42)),
				instance("b", 0, exited, exit(1))),
			want: &RestartAll{Container: "a", ExitCode: 42, Last: map[string]uint32{"a": 0, "b": 0}}},
		{name: "a sidecar", restarting: true, goal: Run,
			input: options(sidecar("s", forAll(corev1.ContainerRestartPolicyAlways)), mainC("m"), s0,
				instance("s", 0, exited, exit(42)), instance("m", 0, running)),
			want: &RestartAll{Container: "s", ExitCode: 42, Last: map[string]uint32{"s": 0, "m": 0},
				Stopped: []string{"m"}}},
		{name: "not once the main containers have ended for good", goal: Finish,
			input: options(never, sidecar("s", forAll(corev1.ContainerRestartPolicyAlways)), mainC("m"), s0,
				instance("s", 0, exited, exit(42)), instance("m", 0, exited))},
		{name: "an init container, before the main ones", restarting: true, goal: Run,
			input: options(never, initC("i"), initAll("j"), mainC("m"), s0, instance("i", 0, exited),
				instance("j", 0, exited, exit(42))),
			want: &RestartAll{Container: "j", ExitCode: 42, Last: map[string]uint32{"i": 0, "j": 0}}},
		{name: "not in a Pod that is deleted", goal: Terminate, input: options(mainC("a", own), s0, deleted(30),
			instance("a", 0, exited, exit(42)))},
		{name: "nor what ended for another size", goal: Run, input: options(mainC("a", own), s0,
			instance("a", 0, exited, exit(42)),
			func(in *Input) { in.Memory.Resize.Restarted["a#0"] = true })},
		{name: "nor a start that was cut off", goal: Run, input: options(mainC("a", own), s0,
			instance("a", 0, exited, exit(42), neverStarted))},
		{name: "also in a sandbox that has died", restarting: true, goal: Run,
			input: options(mainC("a", own), sandbox("s0", 0, false), instance("a", 0, exited, exit(42))),
			want:  &RestartAll{Container: "a", ExitCode: 42, Last: map[string]uint32{"a": 0}}},
		{name: "a start in flight is called off first", restarting: true, goal: Run, cancel: []Key{StartKey("b")},
			input: options(mainC("a", own), mainC("b"), s0, instance("a", 0, exited, exit(42)),
				instance("b", 0, exited), op("start/b"))},
		{name: "an ephemeral container has no part in it", restarting: true, goal: Run,
			input: options(mainC("a", own), ephemeral("e"), s0, instance("a", 0, exited, exit(42)),
				instance("e", 0, running)),
			want: &RestartAll{Container: "a", ExitCode: 42, Last: map[string]uint32{"a": 0}}},
		{name: "the next one, of what has begun since; what was stopped stays so", restarting: true, goal: Run,
			input: options(never, initAll("i"), mainC("m"), mainC("n"), s0, anew("i",
				map[string]uint32{"i": 0, "m": 4, "n": 2}, "m", "n"), instance("i", 1, exited, exit(42)),
				instance("m", 4, exited, exit(137))),
			want: &RestartAll{Container: "i", ExitCode: 42, Last: map[string]uint32{"i": 1, "m": 4, "n": 2},
				Stopped: []string{"m"}}},
	} {
		t.Run(r.name, func(t *testing.T) {
			plan := Decide(build(r.input...))
			if !reflect.DeepEqual(plan.RestartAll, r.want) {
				t.Errorf("begins %+v, want %+v", plan.RestartAll, r.want)
			}
			if plan.RestartAll != nil && len(plan.Actions) > 0 {
				t.Errorf("does %v before it is kept", show(plan.Actions))
			}
			if plan.Restarting != r.restarting || plan.Goal != r.goal {
				t.Errorf("restarting %v, goal %s; want %v, %s", plan.Restarting, plan.Goal, r.restarting, r.goal)
			}
			if !reflect.DeepEqual(plan.Cancel, r.cancel) {
				t.Errorf("calls off %v, want %v", plan.Cancel, r.cancel)
			}
		})
	}
}

// What is of the time before ends at once, whatever the Pod's grace period; then the Pod starts as the first time.
func TestRestartAllGoesOn(t *testing.T) {
	s0, never := sandbox("s0", 0, true), policy(corev1.RestartPolicyNever)
	own := forAll(corev1.ContainerRestartPolicyNever)
	last := map[string]uint32{"i": 0, "s": 0, "m": 0, "n": 0}
	spec := func(more ...func(*Input)) []func(*Input) {
		return append(options(never, initC("i"), sidecar("s"), mainC("m", own), mainC("n", preStop)), more...)
	}
	old := func(more ...func(*Input)) []func(*Input) {
		return append(spec(s0, instance("i", 0, exited), instance("s", 0, exited, exit(137)),
			instance("m", 0, exited, exit(42)), instance("n", 0, exited, exit(137)), anew("m", last, "s", "n")),
			more...)
	}
	for _, r := range []row{
		{name: "all that live are stopped, in no order, without hooks", goal: Run,
			input: spec(s0, instance("i", 0, exited), instance("s", 0, running), instance("m", 0, exited, exit(42)),
				instance("n", 0, running), anew("m", last, "s", "n")),
			want: []string{"StopContainer n#0 in 0s", "StopContainer s#0 in 0s"},
			waiting: map[string]string{"i": RestartingAllContainers, "m": RestartingAllContainers,
				"s": "", "n": ""}},
		{name: "a stop in flight with more time gets less",
			input: spec(s0, instance("m", 0, exited, exit(42)), instance("n", 0, running), anew("m", last, "n"),
				op("stop/n#0", 30*time.Second)), want: []string{"StopContainer n#0 in 0s"}},
		{name: "a stop in flight goes on", input: spec(s0, instance("m", 0, exited, exit(42)),
			instance("n", 0, running), anew("m", last, "n"), op("stop/n#0", 0))},
		{name: "what was created and not started goes", input: spec(s0, instance("m", 0, exited, exit(42)),
			instance("n", 0, created), anew("m", last, "n")), want: []string{"RemoveContainer n#0"}},
		{name: "and what was cut off", input: spec(s0, instance("m", 0, exited, exit(42)),
			instance("n", 0, exited, neverStarted), anew("m", last, "n")), want: []string{"RemoveContainer n#0"}},
		{name: "nothing is waited for to bring it down", input: spec(unprepared, held, s0,
			instance("n", 0, running), instance("m", 0, exited, exit(42)), anew("m", last, "n")),
			want: []string{"StopContainer n#0 in 0s"}},
		{name: "then the first init container again", input: old(), goal: Run, want: []string{"StartContainer i#1"},
			waiting: map[string]string{"i": RestartingAllContainers, "n": RestartingAllContainers}},
		{name: "while it runs nothing else", input: old(instance("i", 1, running))},
		{name: "then the sidecar", input: old(instance("i", 1, exited)), want: []string{"StartContainer s#1"}},
		{name: "then all main containers, though they are never restarted",
			input: old(instance("i", 1, exited), instance("s", 1, running)),
			want:  []string{"StartContainer m#1", "StartContainer n#1"}},
		{name: "then all run", input: old(instance("i", 1, exited), instance("s", 1, running),
			instance("m", 1, running), instance("n", 1, running))},
		{name: "an end is answered once", goal: Finish, input: old(instance("i", 1, exited),
			instance("s", 1, running), instance("m", 1, exited, exit(1)), instance("n", 1, exited)),
			want: []string{"StopContainer s#1 in 30s"}},
		{name: "an init container that fails now ends the Pod", goal: Finish,
			input: old(instance("i", 1, exited, exit(1))), want: []string{"StopSandbox s0"}},
		{name: "the first time at once, later after the back-off of the one that asked",
			input: options(never, initC("i"), mainC("m", own), s0, instance("i", 1, exited),
				instance("m", 1, exited, exit(42)), anew("m", map[string]uint32{"i": 1, "m": 1})),
			wake: 9 * time.Second, waiting: map[string]string{"m": CrashLoopBackOff, "i": RestartingAllContainers}},
		{name: "which a long run begins anew, also for those that were stopped",
			input: options(never, mainC("m", own), mainC("n"), s0,
				instance("m", 7, exited, exit(42), ago(time.Hour, 0)), instance("n", 7, exited, ago(time.Hour, 0)),
				anew("m", map[string]uint32{"m": 7, "n": 7}, "n")),
			want: []string{"StartContainer m#8", "StartContainer n#8"}},
		{name: "a reboot in the midst of it does not end the Pod", goal: Run,
			input: options(never, mainC("n"), sidecar("s", forAll(corev1.ContainerRestartPolicyAlways)),
				sandbox("s0", 0, false), ephemeral("e"), instance("e", 0, exited), instance("n", 0, exited, exit(137)),
				instance("s", 0, exited, exit(42)), anew("s", map[string]uint32{"n": 0, "s": 0}, "n"),
				func(in *Input) { in.Memory.SandboxesStopped["s0"] = true }), want: []string{"CreateSandbox #1"}},
		{name: "instances that the runtime has lost count on",
			input: options(never, mainC("m", own), s0, anew("m", map[string]uint32{"m": 5}), func(in *Input) {
				in.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "m", ContainerID: "x",
					RestartCount: 4}}
			}), want: []string{"StartContainer m#6"}},
		{name: "so do those of which it has lost the last one, created and never started",
			input: options(never, mainC("m", own), mainC("n"), s0, instance("m", 0, exited, exit(42)),
				instance("n", 2, exited), anew("m", map[string]uint32{"m": 0, "n": 3}, "n")),
			want: []string{"StartContainer m#1", "StartContainer n#4"}},
		{name: "an ephemeral container that runs goes on, one that ended is not run again",
			input: options(never, mainC("m", own), ephemeral("e"), ephemeral("f"), s0, instance("e", 0, running),
				instance("f", 0, exited, exit(42)), instance("m", 0, exited, exit(42)),
				anew("m", map[string]uint32{"m": 0})), want: []string{"StartContainer m#1"}},
	} {
		t.Run(r.name, r.run)
	}
	plan := Decide(build(old(instance("i", 1, exited))...))
	if plan.Restarting || plan.RestartAll != nil {
		t.Errorf("restarting %v, begins %+v although all have ended", plan.Restarting, plan.RestartAll)
	}
}

// The back-off of those that had to stop begins anew with a long run only.
func TestRestartAllKeepsBackOffs(t *testing.T) {
	for ran, want := range map[time.Duration]*uint32{10 * time.Minute: new(uint32), 10*time.Minute - 1: nil} {
		plan := Decide(build(policy(corev1.RestartPolicyNever), mainC("m"), sandbox("s0", 0, true),
			instance("m", 0, exited, ago(ran, 0)), anew("gone", map[string]uint32{"m": 0}, "m")))
		check(t, plan, "StartContainer m#1")
		if got := plan.Actions[0].Streak; !reflect.DeepEqual(got, want) {
			t.Errorf("after %s the back-off begins with %v, want %v", ran, got, want)
		}
	}
}

func TestEndedForRestartAll(t *testing.T) {
	r := &RestartAll{Container: "m", ExitCode: 42, Last: map[string]uint32{"m": 1, "n": 2}, Stopped: []string{"n"}}
	for _, row := range []struct {
		name           string
		attempt        uint32
		earlier, ended bool
	}{{"m", 0, true, false}, {"m", 1, true, false}, {"m", 2, false, false}, {"n", 1, true, false}, {"n", 2, true, true},
		{"n", 3, false, false}, {"new", 0, false, false}} {
		c := &observed.Container{Name: row.name, Attempt: row.attempt}
		if r.Earlier(c) != row.earlier || r.Ended(c) != row.ended {
			t.Errorf("%s#%d: earlier %v, ended %v", row.name, row.attempt, r.Earlier(c), r.Ended(c))
		}
		if none := (*RestartAll)(nil); none.Earlier(c) || none.Ended(c) {
			t.Errorf("%s#%d is earlier than nothing", row.name, row.attempt)
		}
	}
}
