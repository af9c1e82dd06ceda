package podworker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/checkpoint"
	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/hooks"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/probe"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
	"keelson.dev/services/nodeagent/internal/sizes"
	"keelson.dev/services/nodeagent/internal/steps"
)

// world is a node in memory: a fake runtime, an API that holds what was published, and one pool at a time.
type world struct {
	t       *testing.T
	runtime *fake.Runtime
	dir     string
	pool    *Pool
	stop    context.CancelFunc
	began   time.Time

	mu     sync.Mutex // guards all fields below
	pods   map[types.UID]*corev1.Pod
	serial int
	log    []string
	hook   func(ctx context.Context, container string) error
	probes map[string]probe.Result
	fail   map[string]error
	// sizeless creates containers as an agent that recorded no sizes did.
	sizeless bool
	// ended are the instances that the pool has reported, synced how long its syncs took, and seen what else it has
	// reported.
	ended, seen []string
	synced      map[Sync]time.Duration
	// unlisted leaves it to the test to call Listed.
	unlisted bool
	// used is the memory in use, by container name; the Pod's own is under the empty name.
	used map[string]uint64
}

// inWorld runs a test in a synctest bubble.
func inWorld(t *testing.T, test func(w *world)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, runtime: fake.New("image:1"), dir: dir, began: time.Now(), pods: map[types.UID]*corev1.Pod{},
			probes: map[string]probe.Result{}, fail: map[string]error{}}
		w.start()
		test(w)
		w.stop()
		w.pool.Wait()
	})
}

// start starts the agent; if one ran already, as after a crash.
func (w *world) start() {
	if w.stop != nil {
		w.stop()
		w.pool.Wait()
	}
	records, err := checkpoint.Open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.pool = NewPool(ctx, Config{
		Log: zap.NewNop(), Runtime: w.runtime, Steps: stepsOf{w}, Preparation: w.preparation(), Hooks: hooksOf{w},
		Probes: probesOf{w}, Statuses: apiOf{w}, Events: eventsOf{w},
		Records: records, HostIPs: func() []string { return []string{"10.0.0.1"} }, RuntimeName: "fake",
		Observer:    observerOf{w},
		Allocatable: func() corev1.ResourceList { return amounts("4", "8Gi") },
	})
	pool := w.pool
	go func() { _ = w.runtime.Watch(ctx, func(e runtime.Event) { pool.Wake(types.UID(e.PodUID)) }) }()
	if !w.unlisted {
		w.list()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.probes)
	for _, pod := range w.pods {
		w.pool.Set(pod, true)
	}
	w.pool.Settle()
}

// list passes to the pool what the runtime has.
func (w *world) list() {
	pods, err := w.runtime.ListPods(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	w.pool.Listed(pods)
}

// put creates or changes a Pod in the API.
func (w *world) put(pod *corev1.Pod) {
	w.mu.Lock()
	w.serial++
	pod = pod.DeepCopy()
	pod.ResourceVersion = fmt.Sprint(w.serial)
	w.pods[pod.UID] = pod
	w.mu.Unlock()
	w.pool.Set(pod, false)
}

func (w *world) get(uid types.UID) *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[uid]
}

// delete requests a graceful deletion.
func (w *world) delete(uid types.UID, grace int64) {
	pod := w.get(uid).DeepCopy()
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Duration(grace) * time.Second)}
	pod.DeletionGracePeriodSeconds = &grace
	w.put(pod)
}

// after lets time pass and waits until everything is idle.
func (w *world) after(d time.Duration) {
	synctest.Wait()
	if d > 0 {
		<-time.After(d)
	}
	synctest.Wait()
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// signals returns the calls to the runtime since the beginning: "verb object @seconds".
func (w *world) signals(verbs ...string) []string {
	var out []string
	for _, c := range w.runtime.Calls() {
		if slices.Contains(verbs, c.Verb) {
			out = append(out, fmt.Sprintf("%s %s @%d", c.Verb, c.Object, c.At.Sub(w.began)/time.Second))
		}
	}
	return out
}

func (w *world) expect(what string, got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s:\n  got  %s\n  want %s", what, strings.Join(got, "; "), strings.Join(want, "; "))
	}
}

func newPod(edit ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1", Generation: 1},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: ptr.To(int64(30)),
			Containers:                    []corev1.Container{{Name: "m", Image: "image:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, e := range edit {
		e(pod)
	}
	return pod
}

// The world's parts, one for each interface of the pool.
type (
	stepsOf  struct{ *world }
	hooksOf  struct{ *world }
	probesOf struct{ *world }
	apiOf    struct{ *world }
	eventsOf struct{ *world }
	// observerOf is in observer_test.go.
	observerOf struct{ *world }
)

func (w stepsOf) failure(step string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.fail[step]
	return err
}

// preparation has two steps, which fail and are recorded under their names.
func (w *world) preparation() []steps.Step {
	step := func(name string) steps.Step {
		return steps.Step{
			Name: name,
			SetUp: func(context.Context, *corev1.Pod) (time.Time, error) {
				w.note("set up %s @%d", name, time.Since(w.began)/time.Second)
				return time.Time{}, stepsOf{w}.failure("Prepare " + name)
			},
			TearDown: func(context.Context, *corev1.Pod) error {
				w.note("take down %s @%d", name, time.Since(w.began)/time.Second)
				return stepsOf{w}.failure("Release " + name)
			},
		}
	}
	return []steps.Step{step("folders"), step("volumes")}
}

func (w stepsOf) Handler(_ context.Context, pod *corev1.Pod) (string, error) {
	return ptr.Deref(pod.Spec.RuntimeClassName, ""), w.failure("Handler")
}

func (w stepsOf) Sandbox(_ context.Context, pod *corev1.Pod, attempt uint32) (*cri.PodSandboxConfig, error) {
	return &cri.PodSandboxConfig{Metadata: &cri.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace,
		Uid: string(pod.UID), Attempt: attempt}}, nil
}

func (w stepsOf) Image(ctx context.Context, _ *corev1.Pod, e lifecycle.Entry, _ *cri.PodSandboxConfig) (runtime.Image,
	error) {
	image, ok, err := w.runtime.ImageStatus(ctx, e.Spec.Image)
	if !ok && err == nil {
		_, err = w.runtime.PullImage(ctx, e.Spec.Image, nil, nil)
	}
	return image, err
}

func (w stepsOf) VolumeImages(context.Context, *corev1.Pod, lifecycle.Entry, *cri.PodSandboxConfig) (map[string]string,
	error) {
	return nil, w.failure("VolumeImages")
}

func (w stepsOf) Container(_ context.Context, in steps.ContainerInput) (*cri.ContainerConfig, error) {
	size, err := sizes.InstanceOf(in.Pod, in.Entry.Spec).Encode()
	annotations := map[string]string{sizes.Annotation: size}
	if w.sizeless {
		annotations = nil
	}
	return &cri.ContainerConfig{Metadata: &cri.ContainerMetadata{Name: in.Entry.Spec.Name, Attempt: in.Attempt},
			Annotations: annotations,
			Linux:       &cri.LinuxContainerConfig{Resources: w.Limits(in.Pod, in.Entry.Spec)},
			Image:       &cri.ImageSpec{Image: in.Image.ID, UserSpecifiedImage: in.Entry.Spec.Image}},
		errors.Join(err, w.failure("Container"))
}

func (w stepsOf) ResizeCgroup(pod *corev1.Pod) error {
	w.note("cgroup %s @%d", shownLimits(cgroup.LimitsOf(pod, 0, memory.Rules{})), time.Since(w.began)/time.Second)
	return w.failure("ResizeCgroup")
}

func shownLimits(l cgroup.Limits) string {
	return fmt.Sprintf("%d/%d/%d", l.CPUShares, l.CPUQuota, l.Memory>>20)
}

func (stepsOf) Limits(pod *corev1.Pod, container *corev1.Container) *cri.LinuxContainerResources {
	return containerconfig.Resized(pod, container, containerconfig.Node{})
}

func (w stepsOf) MemoryUsed(pod *corev1.Pod, id string) (uint64, error) {
	name := ""
	for _, c := range w.pool.Running() {
		if c.ID == id {
			name = c.Name
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used[name], nil
}

func (w stepsOf) Kill(_ *corev1.Pod, id string) error {
	w.runtime.Kill(id)
	return nil
}

func (w stepsOf) Forget(context.Context, *corev1.Pod) error { return nil }

func (w stepsOf) Message(*corev1.Pod, lifecycle.Entry, *observed.Container) string { return "" }

func (w hooksOf) PostStart(ctx context.Context, target hooks.Target) error {
	return w.run(ctx, "postStart", target.Container.Name)
}

func (w hooksOf) PreStop(ctx context.Context, target hooks.Target) error {
	return w.run(ctx, "preStop", target.Container.Name)
}

func (w hooksOf) run(ctx context.Context, name, container string) error {
	w.note("%s %s @%d", name, container, time.Since(w.began)/time.Second)
	w.mu.Lock()
	hook := w.hook
	w.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(ctx, container)
}

// Sync begins, as the prober does, with what the API says of an instance that is new to it.
func (w probesOf) Sync(_ types.UID, targets []probe.Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range targets {
		if _, known := w.probes[t.ContainerID]; !known && t.Ready {
			w.probes[t.ContainerID] = probe.Result{Started: true, Ready: true}
		}
	}
}

func (w probesOf) Result(id string) (probe.Result, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.probes[id]
	return r, ok
}

// Publish writes at once, as a quick API server does, and passes the new version to the pool.
func (w apiOf) Publish(pod *corev1.Pod, status corev1.PodStatus, _ bool) {
	w.mu.Lock()
	current := w.pods[pod.UID]
	if current == nil || apiequality.Semantic.DeepEqual(current.Status, status) {
		w.mu.Unlock()
		return
	}
	if current.Status.Phase != status.Phase {
		w.log = append(w.log, "phase "+string(status.Phase))
	}
	if podview.IsReady(current) && !podview.IsReady(&corev1.Pod{Status: status}) {
		w.log = append(w.log, "unready "+string(pod.UID))
	}
	w.serial++
	next := current.DeepCopy()
	next.Status, next.ResourceVersion = status, fmt.Sprint(w.serial)
	w.pods[pod.UID] = next
	w.mu.Unlock()
	go w.pool.Set(next, false)
}

func (w apiOf) Delete(_ context.Context, pod *corev1.Pod) error {
	w.note("delete %s in phase %s", pod.UID, w.get(pod.UID).Status.Phase)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, pod.UID)
	return nil
}

func (w apiOf) Forget(types.UID) {}

func (w eventsOf) Record(_ *corev1.Pod, path string, e events.Event) {
	w.note("event %s %s: %s", e.Reason, path, e.Message)
}
