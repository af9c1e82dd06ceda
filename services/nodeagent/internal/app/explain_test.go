package app

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/podworker"
)

// TestExplanation compares what an operator is told of a Pod with what its worker does.
func TestExplanation(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{}
	hook := func(name string, h *corev1.LifecycleHandler) corev1.Container {
		return corev1.Container{Name: name, Lifecycle: &corev1.Lifecycle{PostStart: h}}
	}
	pod.Spec.Containers = []corev1.Container{
		hook("web", &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "secret"}}}),
		hook("get", &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{}}),
		hook("nap", &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 30}}),
	}
	running := func(name string, after time.Duration) observed.Container {
		return observed.Container{Name: name, ID: "id-" + name, StartedAt: at.Add(after)}
	}
	told := func(name, what, since, ends string) string {
		return "PostStartHook: container " + name + ": its postStart hook, " + what + ", has not ended since the " +
			"container started at 2026-11-21T" + since + "Z; until then it is neither started nor probed; it ends " +
			"when " + ends + ", or the Pod is deleted"
	}
	run := podstate.Plan{Goal: podstate.Run}
	for _, row := range []struct {
		name    string
		view    podworker.View
		summary string
		facts   []string
	}{
		{"nothing to do", podworker.View{Plan: run, Containers: []observed.Container{running("web", 0)}},
			"node n: goal Run; nothing to do", nil},
		{"a hook hangs", podworker.View{
			Plan:       podstate.Plan{Goal: podstate.Run, Hooking: map[string]bool{"id-web": true}},
			Containers: []observed.Container{running("web", 0), running("other", 0)}, Ops: []string{"start/web"}},
			"node n: goal Run; waits for the postStart hook of container web; under way: [start/web]",
			[]string{told("web", "a command", "12:00:00", "the command exits")}},
		{"hooks hang that a later agent runs", podworker.View{
			Plan:       podstate.Plan{Goal: podstate.Run, Hooking: map[string]bool{"id-nap": true, "id-get": true}},
			Containers: []observed.Container{running("nap", time.Minute), running("get", 0), running("web", 0)},
			Ops:        []string{"hook/id-get", "hook/id-nap", "stop/id-gone"}},
			"node n: goal Run; waits for the postStart hook of container nap, get; " +
				"under way: [hook/get hook/nap stop/id-gone]",
			[]string{told("get", "an HTTP request", "12:00:00", "the request is answered"),
				told("nap", "a sleep of 30 seconds", "12:01:00", "that time is over")}},
		{"a hook is to be tried again", podworker.View{
			Plan:       podstate.Plan{Goal: podstate.Run, Hooking: map[string]bool{"id-web": true}},
			Containers: []observed.Container{running("web", 0)}},
			"node n: goal Run; waits for the postStart hook of container web",
			[]string{told("web", "a command", "12:00:00", "the command exits")}},
		{"the instance is over", podworker.View{
			Plan: podstate.Plan{Goal: podstate.Run, Hooking: map[string]bool{"id-web": true}}},
			"node n: goal Run; nothing to do", nil},
		{"containers wait", podworker.View{At: at, Plan: podstate.Plan{Goal: podstate.Run,
			Waiting: map[string]podstate.Waiting{"web": {Reason: "ContainerCreating", Message: "m"},
				"get": {Reason: "CrashLoopBackOff", Message: "back-off"}}}}, "node n: goal Run",
			[]string{"CrashLoopBackOff: container get: back-off", "ContainerCreating: container web: m"}},
		{"an operation failed", podworker.View{Plan: run, Faults: map[podstate.Key]podstate.Fault{
			podstate.StartKey("web"): {At: at, Count: 2, Reason: "ErrImagePull", Message: "no"}}}, "node n: goal Run",
			[]string{"ErrImagePull: start/web failed 2 times: no"}},
		{"it failed as a whole", podworker.View{Plan: podstate.Plan{Goal: podstate.Finish,
			Outcome: &podstate.Outcome{Message: "evicted"}}},
			"node n: goal Finish; the Pod failed as a whole: evicted", nil},
		{"the API has it no more", podworker.View{Removed: true, Plan: podstate.Plan{Goal: podstate.Terminate}},
			"node n: goal Terminate; the API has no such Pod any more, it is being ended", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.view.Pod = pod
			e := explanation("n", row.view)
			var facts []string
			for _, fact := range e.Facts {
				facts = append(facts, fact.Reason+": "+fact.Message)
			}
			if e.Summary != row.summary || !slices.Equal(facts, row.facts) {
				t.Errorf("got %q\n%q, want %q\n%q", e.Summary, facts, row.summary, row.facts)
			}
		})
	}
}
