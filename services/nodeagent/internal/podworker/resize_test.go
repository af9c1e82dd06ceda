package podworker

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
}

// asks makes the Pod's first container request, and be limited to, these amounts.
func asks(cpu, memory string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts(cpu, memory),
			Limits: amounts(cpu, memory)}
		p.Status.QOSClass = corev1.PodQOSGuaranteed
	}
}

func named(uid string, priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.UID, p.Name, p.Spec.Priority = types.UID(uid), uid, &priority }
}

// resize requests another size from the API.
func (w *world) resize(uid types.UID, edit func(*corev1.Pod)) {
	pod := w.get(uid).DeepCopy()
	edit(pod)
	pod.Generation++
	w.put(pod)
}

func (w *world) condition(uid types.UID, kind corev1.PodConditionType) string {
	c := podview.Condition(w.get(uid), kind)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// has returns what the status reports of the first container: what it was allocated and what it has.
func (w *world) has(uid types.UID) string {
	s := w.get(uid).Status.ContainerStatuses[0]
	return s.AllocatedResources.Cpu().String() + " " + s.Resources.Limits.Cpu().String() + " " +
		s.Resources.Limits.Memory().String()
}

// A container that is being started when a resize begins comes up at the earlier size: the resize goes on until it
// has the new one, and its end is reported once.
func TestResizeWhileAContainerStarts(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetDelay("StartContainer", 5*time.Second)
		w.put(newPod(asks("1", "64Mi")))
		w.after(time.Second)
		w.resize("u1", asks("2", "128Mi"))
		w.after(time.Second)
		if got := logged(w, "event ResizeCompleted"); len(got) > 0 {
			t.Errorf("before its container has started it says %v", got)
		}
		w.after(20 * time.Second)
		if l := w.runtime.Limits("u1", "m"); l.CpuQuota != 200000 {
			t.Errorf("the container is limited to %v", l)
		}
		started, completed := logged(w, "event ResizeStarted"), logged(w, "event ResizeCompleted")
		if len(started) != 1 || len(completed) != 1 {
			t.Errorf("it says %v and %v, want a start and an end", started, completed)
		}
	})
}

// DEP-214: a running container is resized without a restart; the Pod's cgroup is never smaller than the container.
func TestResizeInPlace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(asks("1", "64Mi")))
		w.after(time.Second)
		w.resize("u1", asks("2", "128Mi"))
		w.after(time.Second)
		w.resize("u1", asks("500m", "32Mi"))
		w.after(time.Second)
		w.expect("cgroup", logged(w, "cgroup"), "cgroup 2048/200000/128 @1", "cgroup 2048/200000/128 @1",
			"cgroup 2048/200000/128 @2", "cgroup 512/50000/32 @2")
		w.expect("calls", w.signals("UpdateContainer", "StartContainer", "StopContainer"), "StartContainer m @0",
			"UpdateContainer m @1", "UpdateContainer m @2")
		if l := w.runtime.Limits("u1", "m"); l.CpuQuota != 50000 || l.CpuShares != 512 ||
			l.MemoryLimitInBytes != 32<<20 {
			t.Errorf("the container is limited to %v", l)
		}
		w.expect("status", []string{w.has("u1"), w.condition("u1", "PodResizeInProgress"),
			w.condition("u1", "PodResizePending")}, "500m 500m 32Mi", "none", "none")
		if n := len(logged(w, "event ResizeStarted")) + len(logged(w, "event ResizeCompleted")); n != 4 {
			t.Errorf("%d events, want a start and an end of each resize", n)
		}
	})
}

// DEP-214: a Pod whose node has no room keeps its size until there is room; the status says so if it asks for more
// than the node.
func TestResizeDeferred(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(asks("1", "64Mi")))
		w.put(newPod(asks("3", "64Mi"), named("u2", 0)))
		w.after(time.Second)
		w.resize("u1", asks("2", "64Mi"))
		w.after(time.Second)
		w.expect("status", []string{w.has("u1"), w.condition("u1", "PodResizePending")}, "1 1 64Mi",
			"True Deferred: Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000")
		w.resize("u1", asks("4001m", "64Mi"))
		w.after(time.Second)
		w.expect("status", []string{w.has("u1"), w.condition("u1", "PodResizePending")}, "1 1 64Mi",
			"True Infeasible: Node didn't have enough capacity: cpu, requested: 4001, capacity: 4000")
		w.resize("u1", asks("4", "64Mi"))
		w.after(time.Second)
		w.start() // the next agent must not give the room away before it knows all Pods
		w.after(time.Second)
		w.expect("status", []string{w.has("u1")}, "1 1 64Mi")
		w.expect("updates", w.signals("UpdateContainer"))
		if n, m := len(logged(w, "event ResizeDeferred")), len(logged(w, "event ResizeInfeasible")); n != 2 || m != 1 {
			t.Errorf("%d and %d events, want one each time that the reason is another", n, m)
		}
		w.delete("u2", 30)
		w.after(3 * time.Second)
		w.expect("status", []string{w.has("u1"), w.condition("u1", "PodResizePending")}, "4 4 64Mi", "none")
	})
}

// DEP-214: a deferred resize stays deferred for the next agent, also of a container that has never run.
func TestResizeDeferredBeforeTheStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.mu.Lock()
		w.fail["Container"] = errors.New("no")
		w.mu.Unlock()
		w.put(newPod(asks("1", "64Mi")))
		w.put(newPod(asks("3", "64Mi"), named("u2", 0)))
		w.after(time.Second)
		w.resize("u1", asks("2", "64Mi"))
		w.after(time.Second)
		w.start()
		w.after(time.Second)
		if got := w.condition("u1", "PodResizePending"); got == "none" {
			t.Error("the resize was granted without room")
		}
	})
}

// DEP-214: a Pod that the API has forgotten also makes room, when nothing of it is left.
func TestResizeAfterAForcedDeletion(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(asks("1", "64Mi")))
		w.put(newPod(asks("3", "64Mi"), named("u2", 0)))
		w.after(time.Second)
		w.resize("u1", asks("2", "64Mi"))
		w.after(time.Second)
		w.mu.Lock()
		delete(w.pods, "u2")
		w.mu.Unlock()
		w.pool.Remove("u2")
		w.after(3 * time.Second)
		w.expect("status", []string{w.has("u1")}, "2 2 64Mi")
	})
}

// DEP-214: of the waiting resizes, that of the Pod with the higher priority comes first.
func TestResizeByPriority(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(asks("1", "64Mi"), named("low", 1)))
		w.put(newPod(asks("1", "64Mi"), named("high", 2)))
		w.put(newPod(asks("2", "64Mi"), named("other", 0)))
		w.after(time.Second)
		w.resize("low", asks("3", "64Mi"))
		w.after(time.Second)
		w.resize("high", asks("3", "64Mi"))
		w.after(time.Second)
		w.resize("other", asks("500m", "64Mi")) // room for neither
		w.after(time.Second)
		w.delete("other", 30)
		w.after(3 * time.Second)
		w.expect("status", []string{w.has("high"), w.has("low")}, "3 3 64Mi", "1 1 64Mi")
	})
}

// DEP-214: a container whose policy requires it is restarted, once, regardless of its exit code and without a
// back-off; until then the cgroup has room for both of its sizes.
func TestResizeByRestart(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure} {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put(newPod(asks("1", "64Mi"), func(p *corev1.Pod) {
					p.Spec.RestartPolicy = policy
					p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
						{ResourceName: "memory", RestartPolicy: corev1.RestartContainer}}
				}))
				w.after(time.Second)
				w.resize("u1", asks("2", "64Mi")) // the policy does not mention CPU
				w.after(time.Second)
				w.resize("u1", asks("2", "32Mi"))
				w.after(time.Second)
				w.resize("u1", asks("2", "16Mi"))
				w.after(time.Second)
				w.expect("calls", w.signals("UpdateContainer", "StartContainer", "StopContainer"),
					"StartContainer m @0",
					"UpdateContainer m @1", "StopContainer m @2", "StartContainer m @2", "StopContainer m @3",
					"StartContainer m @3")
				w.expect("cgroup", logged(w, "cgroup"), "cgroup 2048/200000/64 @1", "cgroup 2048/200000/64 @1",
					"cgroup 2048/200000/64 @2", "cgroup 2048/200000/32 @2", "cgroup 2048/200000/32 @3",
					"cgroup 2048/200000/16 @3")
				if l := w.runtime.Limits("u1", "m"); l.MemoryLimitInBytes != 16<<20 {
					t.Errorf("the container is limited to %v", l)
				}
				w.runtime.SetDelay("StopContainer", 2*time.Second)
				w.resize("u1", asks("2", "8Mi"))
				w.after(time.Second)
				if cgroup := logged(w, "cgroup"); len(cgroup) != 6 {
					t.Errorf("the cgroup was narrowed below what runs: %v", cgroup[6:])
				}
			})
		})
	}
}

// DEP-214: a memory limit is not lowered below the memory in use; it is lowered once the use has gone down.
func TestResizeBelowUse(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(asks("1", "64Mi")))
		w.used = map[string]uint64{"": 48 << 20, "m": 33 << 20}
		w.after(time.Second)
		w.resize("u1", asks("1", "32Mi"))
		w.after(0)
		w.expect("updates", w.signals("UpdateContainer"))
		w.expect("status", []string{w.has("u1"), w.condition("u1", "PodResizeInProgress")}, "1 1 64Mi",
			"True Error: cannot decrease memory limits: [attempting to set pod memory limit (33554432) below current "+
				`usage (50331648), attempting to set container "m" memory limit (33554432) below current usage `+
				`(34603008)]`)
		w.mu.Lock()
		w.used = map[string]uint64{"": 32 << 20, "m": 32 << 20}
		w.mu.Unlock()
		w.after(time.Minute)
		w.expect("status", []string{w.has("u1"), w.condition("u1", "PodResizeInProgress")}, "1 1 32Mi", "none")
	})
}

// DEP-214: if an agent ends at any step of a resize, the next one neither loses nor repeats the resize.
func TestResizeSurvivesTheAgent(t *testing.T) {
	for _, step := range []string{"ResizeCgroup", "UpdateContainer", "none"} {
		t.Run(step, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put(newPod(asks("1", "64Mi")))
				w.after(time.Second)
				w.mu.Lock()
				w.fail["ResizeCgroup"] = map[string]error{"ResizeCgroup": errors.New("no")}[step]
				w.mu.Unlock()
				if step == "UpdateContainer" {
					w.runtime.Fail("UpdateContainer", errors.New("no"))
				}
				w.resize("u1", asks("2", "128Mi"))
				w.after(0)
				if step != "none" {
					w.expect("status", []string{w.has("u1")}, "2 1 64Mi")
				}
				w.mu.Lock()
				delete(w.fail, "ResizeCgroup")
				w.mu.Unlock()
				w.start()
				w.after(2 * time.Second)
				w.start()
				w.after(2 * time.Second)
				w.expect("status", []string{w.has("u1"), w.condition("u1", "PodResizeInProgress")}, "2 2 128Mi", "none")
				updates := len(w.signals("UpdateContainer"))
				if want := map[string]int{"ResizeCgroup": 1, "UpdateContainer": 2, "none": 1}[step]; updates != want {
					t.Errorf("%d updates, want %d", updates, want)
				}
			})
		})
	}
}

// DEP-214: the next agent decides on what the API asks for while no agent runs.
func TestResizeWhileTheAgentIsAway(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(asks("1", "64Mi")))
		w.put(newPod(asks("3", "64Mi"), named("u2", 0)))
		w.after(2 * time.Second)
		w.stop()
		w.pool.Wait()
		w.resize("u1", asks("2", "64Mi"))
		w.start()
		w.after(2 * time.Second)
		w.expect("status", []string{w.has("u1"), w.condition("u1", "PodResizePending")}, "1 1 64Mi",
			"True Deferred: Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000")
		w.expect("updates", w.signals("UpdateContainer"))
	})
}

// DEP-214: an agent that starts between the end of an instance and its restart at another size restarts it, even
// where the Pod's policy would not restart it after a success.
func TestRestartToResizeSurvivesTheAgent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(asks("1", "64Mi"), func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: "cpu", RestartPolicy: corev1.RestartContainer}}
		}))
		w.after(time.Second)
		w.runtime.SetDelay("StopContainer", time.Hour)
		w.resize("u1", asks("2", "64Mi"))
		w.after(time.Second)
		w.stop()
		w.pool.Wait()
		w.runtime.Exit("u1", "m", 0)
		w.runtime.SetDelay("StopContainer", 0)
		w.start()
		w.after(2 * time.Second)
		if got := w.get("u1").Status; got.Phase != corev1.PodRunning || w.runtime.Limits("u1", "m").CpuQuota != 200000 {
			t.Errorf("phase %s, limits %v", got.Phase, w.runtime.Limits("u1", "m"))
		}
	})
}

// DEP-214: a container that starts while its Pod is resized starts when the cgroup has room for it, also where a
// memory limit cannot be lowered.
func TestStartsWhereThereIsRoom(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(newPod(asks("1", "64Mi"), func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "n", Image: "image:1"})
		}))
		w.used = map[string]uint64{"m": 48 << 20}
		w.after(time.Second)
		w.mu.Lock()
		w.fail["ResizeCgroup"] = errors.New("no")
		w.mu.Unlock()
		w.resize("u1", asks("2", "32Mi"))
		w.after(0)
		w.runtime.Exit("u1", "n", 1)
		w.after(100 * time.Millisecond)
		if starts := w.signals("StartContainer"); len(starts) != 2 {
			t.Errorf("started without room: %v", starts)
		}
		w.mu.Lock()
		delete(w.fail, "ResizeCgroup")
		w.mu.Unlock()
		w.after(2 * time.Second)
		w.expect("starts", w.signals("StartContainer")[2:], "StartContainer n @2")
		w.expect("updates", w.signals("UpdateContainer"))
	})
}

// The resize of a Pod that is being deleted is not begun.
func TestNoResizeOfAPodThatGoes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runtime.SetBehavior("image:1", fake.Behavior{IgnoreTERM: true})
		w.put(newPod(asks("1", "64Mi")))
		w.after(time.Second)
		w.delete("u1", 30)
		w.after(time.Second)
		before := w.has("u1")
		w.resize("u1", asks("2", "64Mi"))
		w.after(time.Second)
		if after := w.has("u1"); after != before {
			t.Errorf("it had %s and has %s", before, after)
		}
		w.after(time.Minute)
		w.expect("updates", w.signals("UpdateContainer"))
		w.expect("calls", logged(w, "cgroup"))
	})
}

// DEP-214: a container of an agent that recorded no sizes is resized too, whichever step fails and whether this
// agent or the next goes on; the status does not report the new size before that.
func TestResizeOfUnknownSize(t *testing.T) {
	inWorld(t, func(w *world) {
		w.sizeless = true
		w.put(newPod(asks("1", "64Mi")))
		w.after(time.Second)
		w.resize("u1", func(p *corev1.Pod) { p.Labels = map[string]string{"another": "generation"} })
		w.after(time.Second)
		w.expect("updates without a resize", w.signals("UpdateContainer"))
		w.runtime.Fail("UpdateContainer", errors.New("no"))
		w.resize("u1", asks("2", "128Mi"))
		w.after(0)
		w.expect("status", []string{w.condition("u1", "PodResizeInProgress")}, "True Error: no")
		w.start()
		w.after(time.Minute)
		if l := w.runtime.Limits("u1", "m"); l.CpuQuota != 200000 || l.MemoryLimitInBytes != 128<<20 {
			t.Errorf("the container is limited to %v", l)
		}
		w.expect("status", []string{w.has("u1"), w.condition("u1", "PodResizeInProgress")}, "2 2 128Mi", "none")
		before := len(w.signals("UpdateContainer"))
		w.start()
		w.after(time.Minute)
		if after := len(w.signals("UpdateContainer")); before != 2 || after != before {
			t.Errorf("%d updates, and %d after another start; want the one that failed and one more", before, after)
		}
	})
}
