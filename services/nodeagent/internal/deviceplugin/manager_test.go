package deviceplugin

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"keelson.dev/services/nodeagent/internal/podstate"
)

// world is a Manager with a plugin in memory.
type world struct {
	*testing.T
	dir     string
	m       *Manager
	lamp    *lamp
	refused map[types.UID]podstate.Outcome
}

func newWorld(t *testing.T, options *api.DevicePluginOptions, ids string) *world {
	w := &world{T: t, dir: t.TempDir(), lamp: &lamp{}, refused: map[types.UID]podstate.Outcome{}}
	w.reopen()
	plugIn(t, w.m, w.lamp, options, ids)
	return w
}

// reopen starts the next agent.
func (w *world) reopen() {
	w.m = opened(w, w.dir, func(uid types.UID, why podstate.Outcome) { w.refused[uid] = why })
}

// takes makes the node admit a Pod and its plugins allocate.
func (w *world) takes(pod *corev1.Pod) {
	w.Helper()
	if why := w.m.Admit(pod); why != nil {
		w.Fatalf("Pod %s: %s", pod.UID, why.Message)
	}
	if err := w.m.SetUp(w.Context(), pod); err != nil {
		w.Fatalf("Pod %s: %v", pod.UID, err)
	}
}

// gets checks what a container gets.
func (w *world) gets(pod *corev1.Pod, want string) {
	w.Helper()
	grant, err := w.m.Container(w.Context(), pod, &pod.Spec.Containers[0])
	if err != nil || grant.Envs["LED"] != want {
		w.Errorf("Pod %s gets %q, %v; want %q", pod.UID, grant.Envs["LED"], err, want)
	}
}

// A Pod keeps its devices when agent and plugin die, and no other Pod gets them before it has ended.
func TestDevicesOutliveAgentAndPlugin(t *testing.T) {
	w := newWorld(t, nil, "a b")
	one, two, three := podOf("one", "main c 1"), podOf("two", "main c 1"), podOf("three", "main c 1")
	w.takes(one)
	w.gets(one, "a")
	w.reopen()
	if err := w.m.SetUp(t.Context(), one); err != nil {
		t.Errorf("without its plugin: %v", err)
	}
	w.gets(one, "a")
	if capacity, _ := w.m.Amounts(); len(capacity) != 1 || !capacity.Name(led, resource.DecimalSI).IsZero() {
		t.Errorf("without its plugin the node has %v", capacity)
	}
	plugIn(t, w.m, w.lamp, nil, "a b")
	w.takes(two)
	w.gets(two, "b")
	if why := w.m.Admit(three); why == nil || !strings.Contains(why.Message, "Requested: 1, Available: 0") {
		t.Errorf("a third: %+v", why)
	}
	if err := w.m.TearDown("one"); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	plugIn(t, w.m, w.lamp, nil, "a b")
	w.takes(three)
	w.gets(three, "a")
	if want := []string{"allocate a", "allocate b", "allocate a"}; !slices.Equal(w.lamp.calls, want) {
		t.Errorf("the plugin was asked %q", w.lamp.calls)
	}
	if uids, err := w.m.Pods(); err != nil || len(uids) != 2 {
		t.Errorf("on disk is something of %v, %v", uids, err)
	}
}

// A Pod whose processes have ended frees its devices before it is torn down, in either order of the writes, and
// also if its devices were unknown.
func TestStopped(t *testing.T) {
	w := newWorld(t, nil, "a b")
	one, two, next, last := podOf("one", "main c 1"), podOf("two", "main c 1"), podOf("next", "main c 1"),
		podOf("last", "main c 1")
	w.takes(one)
	w.takes(two)
	if w.m.Admit(next) == nil {
		t.Fatal("two Pods have the same device")
	}
	w.m.Stopped("one")
	w.m.Stopped("unknown")
	w.takes(next)
	w.gets(next, "a")
	if w.m.Admit(last) == nil {
		t.Error("what was freed is given out twice")
	}
	w.reopen()
	plugIn(t, w.m, w.lamp, nil, "a b")
	w.gets(next, "a")
	w.m.Stopped("one")
	if err := w.m.TearDown("one"); err != nil {
		t.Fatal(err)
	}
	w.gets(next, "a")
	if err := os.WriteFile(w.m.records.file("two"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	plugIn(t, w.m, w.lamp, nil, "a b")
	if why := w.m.Admit(last); why == nil || !strings.Contains(why.Message, "which devices pod two holds") {
		t.Errorf("beside a damaged record: %+v", why)
	}
	w.m.Stopped("two")
	w.takes(last)
	w.gets(last, "b")
}

// What was promised to a Pod is not promised again, and is free when the Pod is gone.
func TestAdmitPromises(t *testing.T) {
	w := newWorld(t, nil, "a")
	if why := w.m.Admit(podOf("one", "main c 1")); why != nil {
		t.Fatal(why)
	}
	if w.m.Admit(podOf("two", "main c 1")) == nil {
		t.Error("a second Pod is promised the same device")
	}
	if err := w.m.TearDown("one"); err != nil {
		t.Fatal(err)
	}
	if why := w.m.Admit(podOf("two", "main c 1")); why != nil {
		t.Error(why)
	}
}

// A plugin is asked for its preference, and called before each start of a container, if its options require it.
func TestOptions(t *testing.T) {
	w := newWorld(t, &api.DevicePluginOptions{GetPreferredAllocationAvailable: true, PreStartRequired: true}, "a b c")
	pod := podOf("p", "main c 1")
	w.takes(pod)
	w.gets(pod, "c")
	w.gets(pod, "c")
	if want := []string{"allocate c", "start c", "start c"}; !slices.Equal(w.lamp.calls, want) {
		t.Errorf("the plugin was called for %q", w.lamp.calls)
	}
	w.reopen()
	if _, err := w.m.Container(t.Context(), pod, &pod.Spec.Containers[0]); !errors.Is(err, errAway) {
		t.Errorf("a start of which the plugin is not told: %v", err)
	}
}

// A Pod whose plugin refuses is ended; one whose plugin is away waits.
func TestAllocateFails(t *testing.T) {
	w := newWorld(t, nil, "a")
	pod := podOf("p", "main c 1")
	w.lamp.fails = status.Error(codes.Internal, "out of\nlight")
	if why := w.m.Admit(pod); why != nil {
		t.Fatal(why)
	}
	if err := w.m.SetUp(t.Context(), pod); err == nil {
		t.Error("no error")
	}
	const want = "Allocate failed due to Allocate of the plugin of example.com/led: rpc error: code = Internal " +
		"desc = out of light, which is unexpected"
	if why := w.refused["p"]; why.Reason != "UnexpectedAdmissionError" || why.Message != want {
		t.Errorf("it is told %+v", why)
	}
	if _, err := w.m.Container(t.Context(), pod, &pod.Spec.Containers[0]); err == nil {
		t.Error("its container starts without devices")
	}
	clear(w.refused)
	w.lamp.fails = status.Error(codes.Unavailable, "gone")
	if err := w.m.SetUp(t.Context(), pod); err == nil || len(w.refused) > 0 {
		t.Errorf("with a plugin that breaks off: %v, %v", err, w.refused)
	}
	w.reopen()
	if err := w.m.SetUp(t.Context(), pod); !errors.Is(err, errAway) || len(w.refused) > 0 {
		t.Errorf("with a plugin that is away: %v, %v", err, w.refused)
	}
	if err := w.m.SetUp(t.Context(), podOf("q", "main c 1")); !errors.Is(err, errAway) || len(w.refused) > 0 {
		t.Errorf("before a choice, with a plugin that is away: %v, %v", err, w.refused)
	}
	called, cancel := context.WithCancel(t.Context())
	cancel()
	w.lamp.fails = status.Error(codes.Canceled, "called off")
	plugIn(t, w.m, w.lamp, nil, "a")
	if err := w.m.SetUp(called, pod); !errors.Is(err, context.Canceled) || len(w.refused) > 0 {
		t.Errorf("called off: %v, %v", err, w.refused)
	}
	w.lamp.fails = nil
	w.takes(pod)
	w.gets(pod, "a")
}

// A device that broke between admission and set-up is not assigned.
func TestDeviceBreaksBeforeSetUp(t *testing.T) {
	w := newWorld(t, nil, "a b")
	one, two := podOf("one", "main c 1"), podOf("two", "main c 1")
	if w.m.Admit(one) != nil || w.m.Admit(two) != nil {
		t.Fatal("not enough devices")
	}
	plugIn(t, w.m, w.lamp, nil, "a! b c")
	if err := w.m.SetUp(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	w.gets(one, "c")
	if err := w.m.SetUp(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	w.gets(two, "b")
}

// With a record that cannot be read, nothing is assigned: the owners of its devices are unknown. The Pod runs on,
// but starts no container with devices, until it is deleted.
func TestDamagedRecord(t *testing.T) {
	for name, damage := range map[string]func(string) string{
		"empty":           func(string) string { return "" },
		"cut":             func(text string) string { return text[:len(text)-2] },
		"another device":  func(text string) string { return strings.ReplaceAll(text, `"a"`, `"b"`) },
		"another version": func(text string) string { return strings.ReplaceAll(text, `"version":1`, `"version":2`) },
		"nothing":         func(string) string { return "{}" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, "a b")
			one := podOf("one", "main c 1", "main d 0")
			w.takes(one)
			file := w.m.records.file("one")
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, []byte(damage(string(text))), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.reopen()
			plugIn(t, w.m, w.lamp, nil, "a b")
			why := w.m.Admit(podOf("two", "main c 1"))
			if why == nil || !strings.Contains(why.Message, "the record "+file+" is damaged") ||
				!strings.Contains(why.Message, "delete that pod") || strings.Contains(why.Message, "\n") {
				t.Errorf("another Pod is told %+v", why)
			}
			if why := w.m.Admit(podOf("three", "main c 0")); why != nil {
				t.Errorf("a Pod without devices is told %+v", why)
			}
			if err := w.m.SetUp(t.Context(), one); err != nil || len(w.refused) > 0 {
				t.Errorf("the Pod itself is ended: %v", err)
			}
			if _, err := w.m.Container(t.Context(), one, &one.Spec.Containers[0]); !strings.Contains(says(err), file) {
				t.Errorf("its container starts: %v", err)
			}
			if _, err := w.m.Container(t.Context(), one, &one.Spec.Containers[1]); err != nil {
				t.Errorf("its container without devices: %v", err)
			}
			if err := w.m.TearDown("one"); err != nil {
				t.Fatal(err)
			}
			w.takes(podOf("two", "main c 2"))
		})
	}
}

// A Pod that was started before the plugin existed runs on unchanged.
func TestStartedWithoutDevices(t *testing.T) {
	w := newWorld(t, nil, "a")
	pod := podOf("p", "main c 2")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", ContainerID: "x://1"}}
	if err := w.m.SetUp(t.Context(), pod); err != nil || len(w.refused) > 0 {
		t.Errorf("%v, %v", err, w.refused)
	}
	w.gets(pod, "")
}

// After a start of the agent a Pod waits five minutes for its plugin to come back, and is refused then if the
// plugin has too little. A plugin that was present and left is not waited for.
func TestPluginsHaveTimeToComeBack(t *testing.T) {
	w := newWorld(t, nil, "a")
	one, two := podOf("one", "main c 1"), podOf("two", "main c 1")
	w.takes(one)
	w.reopen()
	if why := w.m.Admit(two); why != nil {
		t.Fatalf("at once: %+v", why)
	}
	if err := w.m.SetUp(t.Context(), two); !errors.Is(err, errAway) {
		t.Errorf("before the plugin is back: %v", err)
	}
	var told []types.UID
	w.m.Returned = func(uid types.UID) { told = append(told, uid) }
	plugIn(t, w.m, w.lamp, nil, "a")
	if slices.Sort(told); !slices.Equal(told, []types.UID{"one", "two"}) {
		t.Errorf("%v are told that the plugin is back", told)
	}
	if err := w.m.SetUp(t.Context(), two); err == nil ||
		!strings.Contains(w.refused["two"].Message, "Requested: 1, Available: 0") {
		t.Errorf("with too little: %v, %+v", err, w.refused["two"])
	}
	w.m.lose(w.m.plugins[led].session, true)
	if w.m.Admit(two) == nil {
		t.Error("the plugin that went is waited for")
	}
	w.reopen()
	w.m.startedAt = w.m.startedAt.Add(-grace)
	if w.m.Admit(two) == nil {
		t.Error("after five minutes the plugin is still waited for")
	}
}
