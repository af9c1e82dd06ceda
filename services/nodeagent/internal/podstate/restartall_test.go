package podstate

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/sizes"
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

// recalled turns a start in flight into one that was recalled while it gets its images.
func recalled(text string) func(*Input) {
	return func(in *Input) { in.Ops[key(text)] = Op{Recalled: true} }
}

// anew makes all containers have restarted after these last attempts, because the named one ended.
func anew(cause string, last map[string]uint32, stopped ...string) func(*Input) {
	return func(in *Input) {
		in.Memory.RestartAll = &RestartAll{Container: cause, ExitCode: 42, Last: last, Stopped: stopped}
	}
}

// A restart of all containers is saved before anything is done about it.
func TestRestartAllBegins(t *testing.T) {
	s0, never := sandbox("s0", 0, true), policy(corev1.RestartPolicyNever)
	own := forAll(corev1.ContainerRestartPolicyNever)
	for _, r := range []struct {
		name       string
		input      []func(*Input)
		want       *RestartAll
		restarting bool
		goal       Goal
		recall     []Key
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
		{name: "a start in flight is called off first", restarting: true, goal: Run, recall: []Key{StartKey("b")},
			input: options(mainC("a", own), mainC("b"), s0, instance("a", 0, exited, exit(42)),
				instance("b", 0, exited), op("start/b"))},
		{name: "and a hook", restarting: true, goal: Run, recall: []Key{key("hook/b#0")},
			input: options(mainC("a", own), mainC("b", postStart), s0, instance("a", 0, exited, exit(42)),
				instance("b", 0, running), op("hook/b#0"))},
		{name: "the images of one that was called off are not waited for", restarting: true, goal: Run,
			input: options(mainC("a", own), mainC("b"), s0, instance("a", 0, exited, exit(42)), op("start/b"),
				recalled("start/b")),
			want: &RestartAll{Container: "a", ExitCode: 42, Last: map[string]uint32{"a": 0}}},
		{name: "nor is the start of an ephemeral container called off", restarting: true, goal: Run,
			input: options(mainC("a", own), ephemeral("e"), s0, instance("a", 0, exited, exit(42)), op("start/e")),
			want:  &RestartAll{Container: "a", ExitCode: 42, Last: map[string]uint32{"a": 0}}},
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
			if !reflect.DeepEqual(plan.Recall, r.recall) || plan.Cancel != nil {
				t.Errorf("calls off %v, and %v at once, want %v", plan.Recall, plan.Cancel, r.recall)
			}
		})
	}
}

// Earlier instances end at once, regardless of the Pod's grace period; then the Pod starts as at first.
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

// A restart of all containers counts only for the back-off of the container that required it, and of those that
// would have been restarted anyway.
func TestRestartAllSparesBystanders(t *testing.T) {
	s0, always := sandbox("s0", 0, true), policy(corev1.RestartPolicyAlways)
	asker := mainC("a", forAll(corev1.ContainerRestartPolicyNever))
	for name, r := range map[string]struct {
		input []func(*Input)
		want  map[string]uint32
	}{
		"one that runs":   {options(mainC("b"), instance("b", 3, running)), map[string]uint32{"b": 1}},
		"one that is new": {options(mainC("b"), instance("b", 0, running)), map[string]uint32{"b": 1}},
		"one that crashed before": {options(mainC("b"), instance("b", 5, running), func(in *Input) {
			in.Memory.Streaks["b"] = 4
		}), map[string]uint32{"b": 5}},
		"one that waits to be restarted": {options(mainC("b"), instance("b", 3, exited, exit(1))), map[string]uint32{}},
		"an init container that is done": {options(initC("b"), instance("b", 3, exited)), map[string]uint32{"b": 1}},
		"one that has ended for good": {options(mainC("b", restarted(corev1.ContainerRestartPolicyNever)),
			instance("b", 3, exited, exit(1))), map[string]uint32{"b": 1}},
		"an ephemeral one": {options(ephemeral("b"), instance("b", 0, running)), map[string]uint32{}},
		"one that has not begun since the last time": {options(mainC("b"), instance("b", 3, exited, exit(137)),
			anew("a", map[string]uint32{"a": 1, "b": 3}, "b")), map[string]uint32{}},
	} {
		plan := Decide(build(append(options(always, asker, s0, instance("a", 2, exited, exit(42))), r.input...)...))
		if plan.RestartAll == nil || !reflect.DeepEqual(plan.Streaks, r.want) {
			t.Errorf("%s: begins %v with back-offs from %v, want %v", name, plan.RestartAll, plan.Streaks, r.want)
		}
	}
}

// An instance that cannot be removed is waited for until its processes were killed often enough; its removal is
// retried.
func TestRestartAllPassesWhatStays(t *testing.T) {
	own := forAll(corev1.ContainerRestartPolicyNever)
	for _, r := range []struct {
		name       string
		left       func(*Input)
		failed     int
		age        time.Duration
		restarting bool
		want       []string
	}{
		{"created, twice", instance("n", 0, created), maxRemovals - 1, time.Minute, true,
			[]string{"RemoveContainer n#0"}},
		{"created, too often", instance("n", 0, created), maxRemovals, time.Minute, false,
			[]string{"RemoveContainer n#0", "StartContainer m#1", "StartContainer n#1"}},
		{"created, just now", instance("n", 0, created), maxRemovals, 0, false,
			[]string{"StartContainer m#1", "StartContainer n#1"}},
		{"cut off, twice", instance("n", 0, exited, neverStarted), maxRemovals - 1, time.Minute, true,
			[]string{"RemoveContainer n#0"}},
		{"cut off, too often", instance("n", 0, exited, neverStarted), maxRemovals, time.Minute, false,
			[]string{"RemoveContainer n#0", "StartContainer m#1", "StartContainer n#1"}},
		{"one that runs is waited for in any case", instance("n", 0, running), maxRemovals, time.Minute, true,
			[]string{"StopContainer n#0 in 0s"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			plan := Decide(build(policy(corev1.RestartPolicyNever), mainC("m", own), mainC("n"), sandbox("s0", 0, true),
				instance("m", 0, exited, exit(42)), r.left, anew("m", map[string]uint32{"m": 0, "n": 0}, "n"),
				fault("remove/n#0", "FailedKillPod", r.failed, r.age)))
			check(t, plan, r.want...)
			if plan.Restarting != r.restarting {
				t.Errorf("restarting %v, want %v", plan.Restarting, r.restarting)
			}
		})
	}
}

// Nor does such an instance, without a restart of all, keep a Pod from running or from ending.
func TestCreatedThatStays(t *testing.T) {
	stays := func(count int, more ...func(*Input)) Plan {
		return Decide(build(append(options(policy(corev1.RestartPolicyNever), mainC("n"), sandbox("s0", 0, true),
			instance("n", 0, created), fault("remove/n#0", "FailedKillPod", count, time.Minute)), more...)...))
	}
	check(t, stays(maxRemovals-1), "RemoveContainer n#0")
	check(t, stays(maxRemovals, func(in *Input) { in.Observed.Containers[0].CreatedAt = now.Add(-time.Hour) }),
		"StartContainer n#1")
	check(t, stays(maxRemovals-1, deleted(30)), "RemoveContainer n#0")
	check(t, stays(maxRemovals, deleted(30)), "StopSandbox s0")
}

// A restart of all does not end a resize: the running instances do not have the new size yet.
func TestResizingWhileAllRestart(t *testing.T) {
	size := func(cpus int64) func(*corev1.Container) {
		return func(c *corev1.Container) { c.Resources = limitedTo(cpus) }
	}
	own := forAll(corev1.ContainerRestartPolicyNever)
	for _, r := range []struct {
		name     string
		has      int64
		state    observed.ContainerState
		actuated int64
		want     bool
	}{
		{"what runs is of the old size", 1, running, 2, true},
		{"it has ended", 1, exited, 2, false},
		{"it has the new size", 2, running, 2, false},
		{"the cgroup is of the old size", 1, exited, 3, true},
	} {
		in := build(mainC("m", own, size(2)), mainC("n", size(2)), sandbox("s0", 0, true),
			instance("m", 0, exited, exit(42)), instance("n", 0, r.state),
			anew("m", map[string]uint32{"m": 0, "n": 0}, "n"))
		in.Pod.Generation = 2
		in.Memory.Resize.Updated["n#0"] = sizes.Instance{Resources: limitedTo(r.has)}
		actuated := sizes.Of(in.Pod)
		actuated.Containers["n"] = limitedTo(r.actuated)
		in.Memory.Resize.Cgroup = &actuated
		if got := Decide(in).Resizing; got != r.want {
			t.Errorf("%s: resizing %v, want %v", r.name, got, r.want)
		}
	}
}

// An instance that is being started has the size that its Pod had when the start began.
func TestResizingWhileOneStarts(t *testing.T) {
	for _, r := range []struct {
		name string
		op   Op
		want bool
	}{
		{"of the old size", Op{Size: &sizes.Instance{Resources: limitedTo(1)}}, true},
		{"of the old size, recalled", Op{Size: &sizes.Instance{Resources: limitedTo(1)}, Recalled: true}, false},
		{"of the new size", Op{Size: &sizes.Instance{Resources: limitedTo(2)}}, false},
	} {
		in := build(mainC("m", func(c *corev1.Container) { c.Resources = limitedTo(2) }), sandbox("s0", 0, true))
		in.Pod.Generation = 2
		actuated := sizes.Of(in.Pod)
		in.Memory.Resize.Cgroup, in.Ops = &actuated, map[Key]Op{StartKey("m"): r.op}
		if got := Decide(in).Resizing; got != r.want {
			t.Errorf("%s: resizing %v, want %v", r.name, got, r.want)
		}
	}
}

// A running instance that waits for its postStart hook is not up, for every goal of the Pod.
func TestHookingWhateverTheGoal(t *testing.T) {
	for name, more := range map[string][]func(*Input){
		"run":     nil,
		"restart": {instance("a", 0, exited, exit(42)), anew("a", map[string]uint32{"a": 0, "b": 0}, "b")},
		"delete":  {deleted(30)},
		"hold":    {held},
	} {
		plan := Decide(build(append(options(mainC("a", forAll(corev1.ContainerRestartPolicyNever)),
			mainC("b", postStart), sandbox("s0", 0, true), instance("b", 0, running)), more...)...))
		if !plan.Hooking["b#0"] {
			t.Errorf("%s: b counts as up", name)
		}
	}
}

// For containers that had to stop, the back-off restarts only after a long run.
func TestRestartAllKeepsBackOffs(t *testing.T) {
	for ran, want := range map[time.Duration]*uint32{10 * time.Minute: ptr.To(uint32(1)), 10*time.Minute - 1: nil} {
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
