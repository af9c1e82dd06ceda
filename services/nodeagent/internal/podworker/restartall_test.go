package podworker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

// withRule changes a Pod to one that is never restarted, with an init container, a sidecar, a main container m with
// a preStop hook and a watcher w, whose exit code 42 restarts all of them.
func withRule(p *corev1.Pod) {
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "short:1"},
		{Name: "s", Image: "image:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	preStop(p)
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "w", Image: "image:1",
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyNever),
		RestartPolicyRules: []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{42}}}}})
}

func inWatchedWorld(t *testing.T, test func(w *world)) {
	inWorld(t, func(w *world) {
		if _, err := w.runtime.PullImage(t.Context(), "short:1", nil, nil); err != nil {
			t.Fatal(err)
		}
		w.runtime.SetBehavior("short:1", fake.Behavior{RunFor: time.Second})
		w.put(newPod(withRule))
		w.after(5 * time.Second)
		w.expect("starts", w.started(0), "i", "s", "m", "w")
		test(w)
	})
}

// started lists the containers that were started, except the first ones; main containers start in any order.
func (w *world) started(skip int) []string {
	var names []string
	for _, call := range w.signals("StartContainer")[skip:] {
		names = append(names, strings.Fields(call)[1])
	}
	for i := 0; i+1 < len(names); i++ {
		if names[i] == "w" && names[i+1] == "m" {
			names[i], names[i+1] = "m", "w"
		}
	}
	return names
}

// expectAnew expects that all containers were restarted that many times and run in the first sandbox.
func (w *world) expectAnew(times int32) {
	w.t.Helper()
	status := w.get("u1").Status
	for _, s := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if s.RestartCount != times || s.Name != "i" && s.State.Running == nil {
			w.t.Errorf("%s: %d restarts, %+v; want %d", s.Name, s.RestartCount, s.State, times)
		}
	}
	if status.Phase != corev1.PodRunning {
		w.t.Errorf("phase %s", status.Phase)
	}
	w.expect("sandboxes", w.signals("RunSandbox"), "RunSandbox web @0")
}

func TestRestartsAllContainers(t *testing.T) {
	inWatchedWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
		w.runtime.Exit("u1", "w", 42)
		w.after(time.Minute)
		w.expect("starts", w.started(4), "i", "s", "m", "w")
		w.expectAnew(1)
		w.expect("hooks", logged(w, "preStop"))
		w.expect("events", logged(w, "event RestartingAllContainers"), "event RestartingAllContainers : "+
			"Container w ended with exit code 42, upon which all containers are restarted")
		for name, want := range map[string]int32{"m": 143, "w": 42} {
			for _, s := range w.get("u1").Status.ContainerStatuses {
				if s.Name == name && s.LastTerminationState.Terminated.ExitCode != want {
					t.Errorf("%s: last %+v, want exit code %d", name, s.LastTerminationState.Terminated, want)
				}
			}
		}
	})
}

// A second restart right after the first waits for its back-off, and so do the init containers.
func TestRestartAllBacksOff(t *testing.T) {
	inWatchedWorld(t, func(w *world) {
		for range 2 {
			w.runtime.Exit("u1", "w", 42)
			w.after(3 * time.Second)
		}
		w.expect("starts", w.started(4), "i", "s", "m", "w")
		w.after(10 * time.Second)
		w.expect("starts", w.started(4), "i", "s", "m", "w", "i", "s", "m", "w")
		w.expectAnew(2)
	})
}

// An instance whose postStart hook the restart cancels never counts as up.
func TestRestartAllCallsHooksOff(t *testing.T) {
	inWatchedWorld(t, func(w *world) {
		w.delete("u1", 0)
		w.after(time.Minute)
		w.hook = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
		w.put(newPod(withRule, postStart, func(p *corev1.Pod) { p.UID = "u2" }))
		w.after(5 * time.Second)
		w.runtime.Exit("u2", "w", 42)
		w.after(time.Second)
		s := w.get("u2").Status.ContainerStatuses[0]
		if n := w.runtime.Live("u2", "m"); n != 1 || s.State.Running != nil || s.Ready {
			t.Errorf("%d live, and the status is %+v; want one that waits", n, s.State)
		}
	})
}

// A resize during a restart of all containers is complete once the new instances have the new size, and is reported
// once.
func TestResizeWhileAllRestart(t *testing.T) {
	inWatchedWorld(t, func(w *world) {
		w.runtime.SetDelay("StopContainer", 2*time.Second)
		w.runtime.Exit("u1", "w", 42)
		w.after(0)
		w.resize("u1", asks("2", "64Mi"))
		w.after(time.Second)
		w.expect("told too early", logged(w, "event ResizeCompleted"))
		if got := w.condition("u1", corev1.PodResizeInProgress); got != "True : " {
			t.Errorf("the condition is %s", got)
		}
		w.after(time.Minute)
		if n := len(logged(w, "event ResizeCompleted")); n != 1 {
			t.Errorf("told %d times", n)
		}
		w.expect("updates", w.signals("UpdateContainer"))
		w.expectAnew(1)
	})
}

// withSlow adds a Pod like withRule's, with a container p whose image takes so long to pull.
func (w *world) withSlow(pull time.Duration) {
	if _, err := w.runtime.PullImage(w.t.Context(), "short:1", nil, nil); err != nil {
		w.t.Fatal(err)
	}
	w.runtime.SetBehavior("short:1", fake.Behavior{RunFor: time.Second})
	w.runtime.SetDelay("PullImage", pull)
	w.put(newPod(withRule, func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "p", Image: "slow:1"})
	}))
}

// An image that arrives while the init containers run again starts nothing before they have ended.
func TestRestartAllKeepsItsOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		w.withSlow(10 * time.Second) // from when i has ended
		w.after(10*time.Second + 500*time.Millisecond)
		w.runtime.Exit("u1", "w", 42)
		w.after(time.Minute)
		got := w.started(4)
		if len(got) != 5 || got[0] != "i" || got[1] != "s" {
			t.Errorf("starts %v, want i, s and then all others", got)
		}
		w.expect("pulls", w.signals("PullImage")[1:], "PullImage slow:1 @1")
	})
}

// A restart of all containers neither waits for nor cancels an image pull, however often it happens meanwhile.
func TestRestartAllLetsPullsGoOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.withSlow(15 * time.Minute)
		w.after(5 * time.Second)
		for range 3 {
			w.runtime.Exit("u1", "w", 42)
			w.after(4 * time.Minute)
		}
		w.expect("starts", w.started(0), "i", "s", "m", "w", "i", "s", "m", "w", "i", "s", "m", "w", "i", "s", "m", "w")
		w.after(4 * time.Minute)
		w.expect("then", w.started(16), "p")
		w.expect("pulls", w.signals("PullImage")[1:], "PullImage slow:1 @1")
	})
}

// A failed removal is reported and retried, and does not keep all containers down.
func TestRestartAllBesideWhatStays(t *testing.T) {
	inWatchedWorld(t, func(w *world) {
		refused := make([]error, 8)
		for i := range refused {
			refused[i] = errors.New("device or resource busy")
		}
		w.runtime.Fail("RemoveContainer", refused...)
		w.runtime.Interrupt("u1", "m", observed.Created)
		w.runtime.Exit("u1", "w", 42)
		w.after(time.Minute)
		w.expect("starts", w.started(4), "i", "s", "m", "w")
		w.expectAnew(1)
		if told := logged(w, "event FailedKillPod"); len(told) < 4 || told[0] !=
			"event FailedKillPod spec.containers{m}: error removing container: device or resource busy" {
			t.Errorf("told %q", told)
		}
		w.after(10 * time.Minute)
		if n := len(w.signals("RemoveContainer")); n != len(refused)+1 {
			t.Errorf("tried %d times, want until it succeeds", n)
		}
	})
}

// A healthy container is restarted at once when it ends for the first time, however often others made it restart.
func TestRestartAllSparesBystanders(t *testing.T) {
	for _, crash := range []bool{false, true} { // of the agent, at the end
		inWatchedWorld(t, func(w *world) {
			w.delete("u1", 0)
			w.after(time.Minute)
			w.put(newPod(withRule, func(p *corev1.Pod) {
				p.UID = "u2"
				p.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			}))
			w.after(5 * time.Second)
			for range 4 {
				w.runtime.Exit("u2", "w", 42)
				w.after(2 * time.Minute)
			}
			if crash {
				w.start()
				w.after(0)
			}
			before := len(w.started(0))
			w.runtime.Exit("u2", "m", 1)
			w.after(time.Second)
			w.expect("starts", w.started(before), "m")
			w.runtime.Exit("u2", "m", 1)
			w.after(9 * time.Second)
			w.expect("starts", w.started(before), "m")
			w.after(2 * time.Second)
			w.expect("starts", w.started(before), "m", "m")
		})
	}
}

// A Pod that is deleted before all containers have restarted has not succeeded.
func TestDeletedWhileAllRestart(t *testing.T) {
	for _, after := range []time.Duration{0, 500 * time.Millisecond} {
		inWatchedWorld(t, func(w *world) {
			w.delete("u1", 0)
			w.after(time.Minute)
			w.put(newPod(withRule, func(p *corev1.Pod) {
				p.UID, p.Spec.Containers = "u2", p.Spec.Containers[1:]
				p.Spec.Containers[0].RestartPolicyRules[0].ExitCodes.Values = []int32{0}
			}))
			w.after(5 * time.Second)
			w.runtime.Exit("u2", "w", 0)
			w.after(3 * time.Second)
			w.runtime.Exit("u2", "w", 0) // the second time they wait
			w.after(after)
			w.delete("u2", 30)
			w.after(time.Minute)
			w.expect("phase", logged(w, "delete u2"), "delete u2 in phase Failed")
		})
	}
}

// At whichever step the agent ends, the next one neither forgets the restart of all containers nor does it twice.
func TestRestartAllThroughCrashes(t *testing.T) {
	for _, ended := range []time.Duration{0, time.Second, 2 * time.Second, 2500 * time.Millisecond, 3 * time.Second} {
		inWatchedWorld(t, func(w *world) {
			w.runtime.SetDelay("StopContainer", time.Second)
			w.runtime.Exit("u1", "w", 42)
			w.after(ended)
			w.start()
			w.after(time.Minute)
			w.expect("starts "+ended.String(), w.started(4), "i", "s", "m", "w")
			w.expectAnew(1)
		})
	}
}

// A restart that cannot be recorded is not begun, and is tried again.
func TestRestartAllIsKeptFirst(t *testing.T) {
	inWatchedWorld(t, func(w *world) {
		const save = "nodeagent/checkpoint.save.before"
		if err := failpoint.Arm(save, "error(no room)"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { failpoint.Disarm(save) })
		w.runtime.Exit("u1", "w", 42)
		w.after(time.Minute)
		w.expect("stops", w.signals("TERM", "KILL"))
		w.expect("starts", w.started(4))
		failpoint.Disarm(save)
		w.after(time.Minute)
		w.expect("starts", w.started(4), "i", "s", "m", "w")
		w.expectAnew(1)
	})
}
