package podworker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/probe"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

func preStop(pod *corev1.Pod) {
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}}
}

func postStart(pod *corev1.Pod) {
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}}
}

func logged(w *world, prefix string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, line := range w.log {
		if strings.HasPrefix(line, prefix) {
			out = append(out, line)
		}
	}
	return out
}

func TestStartsAPod(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod())
		w.after(0)
		w.expect("calls", w.signals("RunSandbox", "CreateContainer", "StartContainer"), "RunSandbox web @0",
			"CreateContainer m @0", "StartContainer m @0")
		if got := w.get("u1").Status.Phase; got != corev1.PodRunning { // POD-070
			t.Errorf("phase %s, want Running", got)
		}
		w.expect("events", logged(w, "event"), // POD-221 POD-222
			"event Created spec.containers{m}: Created container: m",
			"event Started spec.containers{m}: Started container m")
	})
}

// POD-100 POD-101 POD-102 POD-104: the n-th restart comes after its delay, and not before.
func TestCrashLoop(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{RunFor: time.Second, ExitCode: 1})
		w.put(newPod())
		w.after(1000 * time.Second)
		w.expect("starts", w.signals("StartContainer"),
			"StartContainer m @0", "StartContainer m @1", "StartContainer m @12", "StartContainer m @33",
			"StartContainer m @74",
			"StartContainer m @155", "StartContainer m @316", "StartContainer m @617", "StartContainer m @918")
		s := w.get("u1").Status.ContainerStatuses[0]
		if s.State.Waiting == nil || s.State.Waiting.Reason != podstate.CrashLoopBackOff || s.RestartCount != 8 {
			t.Errorf("status %+v, want CrashLoopBackOff after 8 restarts", s)
		}
		if len(logged(w, "event BackOff spec.containers{m}")) == 0 {
			t.Error("no BackOff event")
		}
	})
}

// POD-146: a process that ends, watched by no probe, is restarted as the Pod's policy says.
func TestCrashWithoutProbe(t *testing.T) {
	restarted := []string{"StartContainer m @0", "StartContainer m @1"}
	for _, r := range []struct {
		policy corev1.RestartPolicy
		code   int32
		starts []string
		phase  corev1.PodPhase
	}{
		{corev1.RestartPolicyAlways, 0, restarted, corev1.PodRunning},
		{corev1.RestartPolicyAlways, 1, restarted, corev1.PodRunning},
		{corev1.RestartPolicyOnFailure, 0, restarted[:1], corev1.PodSucceeded},
		{corev1.RestartPolicyOnFailure, 1, restarted, corev1.PodRunning},
		{corev1.RestartPolicyNever, 0, restarted[:1], corev1.PodSucceeded},
		{corev1.RestartPolicyNever, 1, restarted[:1], corev1.PodFailed},
	} {
		t.Run(fmt.Sprintf("%s after %d", r.policy, r.code), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put(newPod(func(p *corev1.Pod) { p.Spec.RestartPolicy = r.policy }))
				w.after(time.Second)
				w.runtime.Exit("u1", "m", r.code)
				w.after(time.Second)
				w.expect("starts", w.signals("StartContainer"), r.starts...)
				if got := w.get("u1").Status.Phase; got != r.phase {
					t.Errorf("phase %s, want %s", got, r.phase)
				}
			})
		})
	}
}

func TestBackOffResets(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{RunFor: time.Second, ExitCode: 1})
		w.put(newPod())
		w.after(32 * time.Second) // three runs so far; the fourth lasts long
		w.runtime.SetBehavior("image:1", fake.Behavior{RunFor: 11 * time.Minute, ExitCode: 1})
		w.after(2 * time.Second) // starts at 33 s, ends at 693 s
		w.runtime.SetBehavior("image:1", fake.Behavior{RunFor: time.Second, ExitCode: 1})
		w.start() // POD-102: the next agent knows it as well
		w.after(700 * time.Second)
		starts := w.signals("StartContainer")
		w.expect("starts", starts[3:], "StartContainer m @33", "StartContainer m @693", "StartContainer m @704",
			"StartContainer m @725")
	})
}

// SAF-136: the times at which TERM and KILL are sent to a process that ignores TERM.
func TestTerminationTimes(t *testing.T) {
	for _, r := range []struct {
		name  string
		grace int64
		hook  time.Duration
		want  []string
	}{
		{"POD-170 grace 30, no hook", 30, -1, []string{"TERM m @0", "KILL m @30"}},
		{"grace 30, hook takes 10 s", 30, 10 * time.Second, []string{"TERM m @10", "KILL m @30"}},
		{"POD-156 POD-245 SAF-137 grace 30, hook never ends", 30, time.Hour, []string{"TERM m @30", "KILL m @32"}},
		{"SAF-134 SAF-137 grace 1, no hook", 1, -1, []string{"TERM m @0", "KILL m @2"}},
		{"POD-155 grace 0 skips the hook", 0, time.Hour, []string{"TERM m @0", "KILL m @2"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
				pod := newPod()
				if r.hook >= 0 {
					preStop(pod)
					w.hook = func(ctx context.Context, _ string) error {
						select {
						case <-time.After(r.hook):
						case <-ctx.Done():
						}
						return ctx.Err()
					}
				}
				w.put(pod)
				w.after(0)
				w.delete("u1", r.grace)
				w.after(time.Minute)
				w.expect("signals", w.signals("TERM", "KILL"), r.want...)
				if w.get("u1") != nil {
					t.Error("the object is still there")
				}
			})
		})
	}
}

// SAF-136: the process ends during its preStop hook.
func TestEarlyExit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hook = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		w.put(newPod(preStop))
		w.after(0)
		w.delete("u1", 30)
		w.after(3 * time.Second)
		w.runtime.Exit("u1", "m", 0)
		w.after(time.Second)
		if w.get("u1") != nil {
			t.Error("the object is still there although its process has ended")
		}
		w.expect("signals", w.signals("TERM", "KILL"))
	})
}

// SAF-138 POD-166 POD-167: the final status comes before the deletion, and both come after the last process has
// ended.
func TestDeletionOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{StopTakes: 3 * time.Second})
		w.put(newPod())
		w.after(0)
		w.delete("u1", 30)
		w.after(2 * time.Second)
		if w.get("u1") == nil || w.get("u1").Status.Phase != corev1.PodRunning {
			t.Fatal("the Pod ended before its process did")
		}
		w.after(2 * time.Second) // SAF-136: soon after the process has ended, not at the end of the period
		w.expect("order", append(logged(w, "phase"), logged(w, "delete")...), "phase Running", "phase Failed",
			"delete u1 in phase Failed")
		w.expect("signals", w.signals("TERM", "KILL"), "TERM m @0")
		if state, _ := w.runtime.PodState(t.Context(), "u1"); !state.Empty() {
			t.Errorf("the runtime still has %+v", state)
		}
		if w.pool.Pod("u1") != nil {
			t.Error("the worker is still there")
		}
	})
}

// SAF-129: a second, shorter request brings the kill forward.
func TestShorterPeriod(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
		w.put(newPod())
		w.after(0)
		w.delete("u1", 300)
		w.after(3 * time.Second)
		w.delete("u1", 10)
		w.after(time.Minute)
		w.expect("kill", w.signals("KILL"), "KILL m @10")
	})
}

// SAF-140 POD-169: after a restart the full period begins again, and the kill never comes before its end.
func TestRestartDuringTermination(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
		w.put(newPod())
		w.after(0)
		w.delete("u1", 30)
		w.after(25 * time.Second)
		w.start()
		w.after(time.Minute)
		w.expect("kill", w.signals("KILL"), "KILL m @55")
	})
}

// An agent that starts adopts running containers: none is restarted.
func TestAdoption(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(postStart))
		w.after(0)
		w.start()
		w.after(time.Minute)
		w.expect("calls", w.signals("RunSandbox", "CreateContainer", "TERM", "RemoveContainer"), "RunSandbox web @0",
			"CreateContainer m @0")
		w.expect("hooks", logged(w, "postStart"), "postStart m @0")
		if s := w.get("u1").Status; s.Phase != corev1.PodRunning || s.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

// SAF-146 SAF-167: a Pod that the API does not have is brought down.
func TestOrphan(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod())
		w.after(0)
		w.mu.Lock()
		delete(w.pods, "u1")
		w.mu.Unlock()
		w.start()
		w.pool.Adopt("u1", "ns", "web")
		w.after(time.Minute)
		if state, _ := w.runtime.PodState(t.Context(), "u1"); !state.Empty() {
			t.Errorf("the runtime still has %+v", state)
		}
		w.expect("object", logged(w, "delete"))
	})
}

// SAF-141: while the runtime does not answer, the Pod stays terminating.
func TestSilentRuntimeHoldsDeletion(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod())
		w.after(0)
		w.runtime.SetDown(errors.New("no answer"))
		w.delete("u1", 5)
		w.after(time.Hour)
		if w.get("u1") == nil || podTerminal(w.get("u1")) {
			t.Fatal("the Pod ended although nobody knows whether its process did")
		}
		w.runtime.SetDown(nil)
		w.after(2 * time.Minute)
		if w.get("u1") != nil {
			t.Error("the Pod did not go when the runtime answered again")
		}
	})
}

func podTerminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// A Pod is deleted in the middle of an image pull.
func TestDeletionDuringPull(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetDelay("PullImage", time.Hour)
		w.put(newPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "big:1" }))
		w.after(time.Minute)
		w.delete("u1", 30)
		w.after(time.Second)
		if w.get("u1") != nil {
			t.Error("the deletion waits for the pull")
		}
	})
}

// DEP-060 DEP-058
func TestImagePullBackOff(t *testing.T) {
	inWorld(t, func(w *world) {
		missing := errors.New("no such image")
		w.runtime.Fail("PullImage", missing, missing, missing)
		w.put(newPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "missing:1" }))
		w.after(0)
		reason := func() string {
			if s := w.get("u1").Status.ContainerStatuses[0].State.Waiting; s != nil {
				return s.Reason
			}
			return ""
		}
		if got := reason(); got != podstate.ErrImagePull {
			t.Errorf("waits for %q first, want ErrImagePull", got)
		}
		w.after(5 * time.Second)
		if got := reason(); got != podstate.ImagePullBackOff {
			t.Errorf("waits for %q then, want ImagePullBackOff", got)
		}
		w.after(5 * time.Minute)
		w.expect("pulls", w.signals("PullImage"), "PullImage missing:1 @0", "PullImage missing:1 @10",
			"PullImage missing:1 @30", "PullImage missing:1 @70")
		if w.get("u1").Status.Phase != corev1.PodRunning {
			t.Error("the Pod does not run although its image came")
		}
	})
}

// POD-086 POD-091
func TestPostStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hook = func(context.Context, string) error { <-time.After(5 * time.Second); return nil }
		w.put(newPod(postStart))
		w.after(4 * time.Second)
		if s := w.get("u1").Status; s.Phase != corev1.PodPending || s.ContainerStatuses[0].State.Running != nil {
			t.Errorf("reported running before its hook has ended: %+v", s)
		}
		w.after(2 * time.Second)
		if w.get("u1").Status.ContainerStatuses[0].State.Running == nil {
			t.Error("not running after its hook")
		}
	})
}

func TestFailedPostStartRestarts(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hook = func(context.Context, string) error { return errors.New("refused") }
		w.put(newPod(postStart))
		w.after(5 * time.Second)
		w.expect("signals", w.signals("StartContainer", "TERM"), "StartContainer m @0", "TERM m @0",
			"StartContainer m @0", "TERM m @0")
	})
}

// POD-140: a liveness failure stops the container, which is then restarted; the others keep running.
func TestLiveness(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "n", Image: "image:1"})
		}))
		w.after(0)
		state, _ := w.runtime.PodState(t.Context(), "u1")
		w.mu.Lock()
		w.probes[state.Latest("m").ID] = probe.Result{Started: true, Ready: true,
			Kill: &probe.Kill{Kind: probe.Liveness, Message: "Container m failed liveness probe",
				GracePeriod: ptr.To(int64(1))}}
		w.mu.Unlock()
		w.pool.Wake("u1")
		w.after(5 * time.Second)
		w.expect("stops", w.signals("TERM"), "TERM m @0")
		if got := w.get("u1").Status.ContainerStatuses[0].RestartCount; got != 1 {
			t.Errorf("%d restarts, want 1", got)
		}
	})
}

// POD-206 POD-207 JOB-119
func TestActiveDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To(int64(60)) }))
		w.after(59 * time.Second)
		w.expect("before", w.signals("TERM"))
		w.after(2 * time.Second)
		if s := w.get("u1").Status; s.Phase != corev1.PodFailed || s.Reason != "DeadlineExceeded" {
			t.Errorf("phase %s, reason %q", s.Phase, s.Reason)
		}
	})
}

// POD-128 POD-208: a lost sandbox is replaced and the Pod comes back in it.
func TestLostSandbox(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod())
		w.after(0)
		w.runtime.LoseSandboxes("u1")
		w.after(time.Minute)
		if n := len(w.signals("RunSandbox")); n != 2 {
			t.Errorf("%d sandboxes were made, want 2", n)
		}
		if w.runtime.Live("u1", "m") != 1 || w.get("u1").Status.Phase != corev1.PodRunning {
			t.Error("the Pod did not come back")
		}
	})
}

// Without a network, sandboxes are tried again after longer and longer times; when it becomes ready, at once.
func TestNetworkComesLate(t *testing.T) {
	inWorld(t, func(w *world) {
		missing := errors.New("cni plugin not initialized")
		w.runtime.Fail("RunSandbox", missing, missing, missing, missing)
		w.put(newPod())
		w.after(10 * time.Second)
		w.pool.Networked()
		w.after(0)
		w.expect("sandboxes", w.signals("RunSandbox"), "RunSandbox web @0", "RunSandbox web @1", "RunSandbox web @3",
			"RunSandbox web @7", "RunSandbox web @10")
		if w.get("u1").Status.Phase != corev1.PodRunning {
			t.Error("the Pod does not run although the network came")
		}
	})
}

// A Pod runs with the handler of its runtime class. A missing class, or a handler that the runtime does not have,
// is reported by one event at each attempt.
func TestRuntimeHandler(t *testing.T) {
	for class, row := range map[string]struct {
		fail error
		want []string
	}{
		fake.Handler: {nil, nil},
		"strange": {nil,
			[]string{
				`event FailedCreatePodSandBox : Failed to create pod sandbox: no runtime for "strange" is configured`}},
		"gone": {errors.New("failed to get sandbox runtime: not found"),
			[]string{"event FailedCreatePodSandBox : Failed to create pod sandbox: failed to get sandbox runtime: " +
				"not found"}},
	} {
		inWorld(t, func(w *world) {
			w.failStep("Handler", row.fail)
			w.put(newPod(func(pod *corev1.Pod) { pod.Spec.RuntimeClassName = &class }))
			w.after(time.Second / 2)
			w.expect("events of "+class, logged(w, "event FailedCreatePodSandBox"), row.want...)
			if runs := w.get("u1").Status.Phase == corev1.PodRunning; runs != (row.want == nil) {
				t.Errorf("%s: it runs: %t", class, runs)
			}
		})
	}
}

func TestRejection(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pool.config.Admit = func(*corev1.Pod, []*corev1.Pod) *podstate.Outcome {
			return &podstate.Outcome{Reason: "OutOfcpu", Message: "too much"}
		}
		w.put(newPod())
		w.after(time.Second)
		if s := w.get("u1").Status; s.Phase != corev1.PodFailed || s.Reason != "OutOfcpu" {
			t.Errorf("phase %s, reason %q", s.Phase, s.Reason)
		} else if len(s.ContainerStatuses) > 0 { // a container's reason hides the Pod's own in the output of clients
			t.Errorf("containers that never were: %+v", s.ContainerStatuses)
		}
		w.expect("calls", w.signals("RunSandbox"))
	})
}

// SAF-071: an evicted Pod fails, quickly and for good: its containers get a second instead of their own grace
// period, and none is restarted.
func TestEviction(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
		w.put(newPod())
		w.after(10 * time.Second)
		why := podstate.Outcome{Reason: "Evicted", Message: "too much", Grace: time.Second}
		w.pool.Evict("u1", why)
		w.pool.Evict("u1", why)
		w.after(2 * time.Minute)
		// The kill comes two seconds after the signal at the earliest.
		w.expect("signals", w.signals("StartContainer", "TERM", "KILL"), "StartContainer m @0", "TERM m @10",
			"KILL m @12")
		if s := w.get("u1").Status; s.Phase != corev1.PodFailed || s.Reason != "Evicted" || s.Message != "too much" {
			t.Errorf("phase %s, reason %q, message %q", s.Phase, s.Reason, s.Message)
		}
		if c := podview.Condition(w.get("u1"), corev1.DisruptionTarget); c != nil {
			t.Errorf("SAF-071: the Pod's own fault gave it %+v", c)
		}
		w.expect("events", logged(w, "event Evicted"), "event Evicted : too much")
		w.start() // the next agent does not end again what has ended
		w.pool.Evict("u1", why)
		w.after(time.Second)
		w.expect("events after the end", logged(w, "event Evicted"), "event Evicted : too much")
	})
}

// POD-141: a container that fails its readiness probe gets no traffic, and is neither stopped nor restarted.
func TestReadinessFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} }))
		w.after(time.Second)
		id := strings.TrimPrefix(w.get("u1").Status.ContainerStatuses[0].ContainerID, "fake://")
		for _, ready := range []bool{true, false} {
			w.mu.Lock()
			w.probes[id] = probe.Result{Started: true, Ready: ready}
			w.mu.Unlock()
			w.pool.Notify("u1")
			w.after(time.Hour)
			got := podview.Condition(w.get("u1"), corev1.PodReady)
			if got == nil || (got.Status == corev1.ConditionTrue) != ready ||
				w.get("u1").Status.ContainerStatuses[0].Ready != ready {
				t.Errorf("the probe says ready %v, the Pod %+v", ready, got)
			}
		}
		w.expect("signals", w.signals("StartContainer", "StopContainer", "TERM", "KILL"), "StartContainer m @0")
	})
}

// SAF-070, SAF-090: a Pod that the node has ended for its own sake stays ended when its agent dies in the middle of
// that, and its status says from the beginning that the node ended it.
func TestEvictionSurvivesTheAgent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
		w.put(newPod())
		w.after(10 * time.Second)
		w.pool.Evict("u1", podstate.Outcome{Reason: "Evicted", Message: "too much", Grace: time.Second,
			Disruption: true})
		w.after(time.Second)
		disrupted := func(when string) {
			got := podview.Condition(w.get("u1"), corev1.DisruptionTarget)
			if got == nil || got.Status != corev1.ConditionTrue || got.Reason != "TerminationByKubelet" ||
				got.Message != "too much" {
				t.Errorf("%s: DisruptionTarget is %+v", when, got)
			}
		}
		disrupted("while its containers stop")
		w.mu.Lock() // as if the agent had died before it could say so
		w.pods["u1"] = w.pods["u1"].DeepCopy()
		w.pods["u1"].Status.Conditions = nil
		w.mu.Unlock()
		w.start()
		w.after(2 * time.Minute)
		disrupted("after the restart of the agent")
		w.expect("starts", w.signals("StartContainer"), "StartContainer m @0")
		if s := w.get("u1").Status; s.Phase != corev1.PodFailed || s.Reason != "Evicted" || s.Message != "too much" {
			t.Errorf("phase %s, reason %q, message %q", s.Phase, s.Reason, s.Message)
		}
		w.expect("events", logged(w, "event Evicted"), "event Evicted : too much")
	})
}

// The runtime is asked nothing about a Pod that is new to the node before its sandbox is created, and everything
// about one of which an earlier agent may have left something.
func TestOnlyKnownPodsAreLookedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod())
		w.after(time.Second)
		if got := w.signals("PodState", "RunSandbox")[0]; got != "RunSandbox web @0" {
			t.Errorf("first of all: %s", got)
		}
	})
	inWorld(t, func(w *world) {
		w.pods["u1"] = newPod()
		w.start() // the runtime may have something of the Pod: the earlier agent recorded nothing
		w.after(time.Second)
		if got := w.signals("PodState", "RunSandbox")[0]; got != "PodState u1 @0" {
			t.Errorf("first of all: %s", got)
		}
	})
}
