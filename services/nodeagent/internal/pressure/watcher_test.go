package pressure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// world is a machine of 1000 process IDs and 1000 KiB of memory, with its Pods.
type world struct {
	t    *testing.T
	proc string

	mu   sync.Mutex // guards log and pods, which the Watcher uses from a goroutine of its own
	log  []string
	pods []Pod

	// stored are the conditions that an earlier agent has left.
	stored []corev1.NodeCondition
	*Watcher
}

func newWorld(t *testing.T, flags ...string) *world {
	w := &world{t: t, proc: t.TempDir()}
	w.Watcher = New(Config{
		Log: zap.NewNop(), Rules: rulesOf(t, flags...).HoldPods(),
		Host: &Host{Proc: w.proc, NodeFs: w.proc, MaxPIDs: 1000, PodMemory: 600 << 10,
			ImageFs: func(context.Context) (string, error) { return w.proc, nil },
			Pods:    func() (cgroup.Usage, error) { return cgroup.Usage{WorkingSet: 100 << 10}, nil }},
		Stored:  func() []corev1.NodeCondition { return w.stored },
		Changed: func() { w.note("changed: %v", w.Conditions()) },
		Pods:    w.running,
		Measure: func(_ context.Context, pod *Pod, _ Signal) (Usage, error) { return pod.Usage, nil },
		Reclaim: func(_ context.Context, step Step) error { w.note("%s", step); return nil },
		Evict:   func(uid types.UID, _ podstate.Outcome) { w.note("evict %s", uid) },
		Record:  func(e events.Event) { w.note("%s", e.Reason) },
		Evicted: func(s Signal) { w.note("count %s", s) },
	})
	w.has(500, 500)
	return w
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world) running() []Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.pods)
}

// run sets the Pods of the machine.
func (w *world) run(pods ...Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = pods
}

// has sets the machine's available memory, in KiB, and its number of processes.
func (w *world) has(memory, processes int) {
	w.t.Helper()
	for file, text := range map[string]string{
		"meminfo": fmt.Sprintf("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: %d kB\n", memory),
		"loadavg": fmt.Sprintf("0.1 0.2 0.3 1/%d 4711\n", processes),
	} {
		if err := os.WriteFile(filepath.Join(w.proc, file), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// logged checks what has happened since the last call.
func (w *world) logged(when, want string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.log, "; "); got != want {
		w.t.Errorf("%s: %q, want %q", when, got, want)
	}
	w.log = nil
}

// The node is checked every ten seconds, at most one Pod is evicted each time, and changed conditions are reported.
func TestWatcher(t *testing.T) {
	w := newWorld(t, "--eviction-hard=memory.available<100Ki,pid.available<100",
		"--eviction-pressure-transition-period=30s")
	large, small := podOf("large", 0, "", 2), podOf("small", 0, "", 1)
	w.run(large, small)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		pass := func() { <-time.After(10 * time.Second); synctest.Wait() }
		synctest.Wait()
		w.logged("all is well", "")
		w.has(99, 500)
		pass()
		w.logged("memory is short", "changed: [MemoryPressure]; EvictionThresholdMet; "+
			"count memory.available; evict large")
		pass()
		w.logged("the Pod has not ended", "EvictionThresholdMet")
		large.Ended = true
		w.run(large, small)
		pass()
		w.logged("it has", "EvictionThresholdMet; count memory.available; evict small")
		w.has(500, 500)
		pass()
		pass()
		w.logged("memory was short a moment ago", "")
		pass()
		w.logged("it is no longer", "changed: []")
		w.has(500, 901)
		w.run()
		pass()
		w.logged("nobody is left", "changed: [PIDPressure]; EvictionThresholdMet")
		cancel()
		synctest.Wait()
	})
}

// The memory of all Pods together counts even if the machine has enough.
func TestAllocatableMemory(t *testing.T) {
	w := newWorld(t, "--eviction-hard=memory.available<100Ki")
	w.run(podOf("only", 0, "", 1))
	for _, r := range []struct{ used, want string }{
		{"500Ki", ""},
		{"501Ki", "changed: [MemoryPressure]; EvictionThresholdMet; " +
			"count allocatableMemory.available; evict only"},
	} {
		used := rulesOf(t, "--eviction-hard=memory.available<"+r.used).Thresholds[0].Least.Of(0)
		w.Host.Pods = func() (cgroup.Usage, error) { return cgroup.Usage{WorkingSet: uint64(used)}, nil }
		w.Pass(t.Context())
		w.logged("Pods use "+r.used, r.want)
	}
}

// Dead containers and unused images are removed before Pods, which are spared if that was enough.
func TestReclaimFirst(t *testing.T) {
	w := newWorld(t, "--eviction-hard=nodefs.available<99.99%")
	w.run(podOf("only", 0, "", 1))
	w.Pass(t.Context())
	w.logged("the disk is short", "changed: [DiskPressure]; EvictionThresholdMet; "+
		"remove containers that have ended; remove images that nothing uses; count nodefs.available; evict only")

	w = newWorld(t, "--eviction-hard=nodefs.available<99.99%")
	w.run(podOf("only", 0, "", 1))
	w.Reclaim = func(_ context.Context, step Step) error {
		w.note("%s", step)
		w.Host.NodeFs = "/dev/shm" // acts as a disk that has become empty
		return nil
	}
	empty := Threshold{Least: Amount{Percent: 99.99}}
	if level, err := fileSystem("/dev/shm", false); err != nil || empty.crossed(level) {
		t.Skipf("/dev/shm is not an empty file system: %+v, %v", level, err)
	}
	w.Pass(t.Context())
	w.logged("removing containers was enough", "changed: [DiskPressure]; EvictionThresholdMet; "+
		"remove containers that have ended")
}

// An earlier agent's conditions of the node hold until the transition period is over.
func TestConditionsOutliveTheAgent(t *testing.T) {
	w := newWorld(t, "--eviction-hard=memory.available<100Ki")
	w.stored = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}
	w.Pass(t.Context())
	if got := fmt.Sprint(w.Conditions()); got != "[DiskPressure]" {
		t.Errorf("the conditions are %s", got)
	}
	w.logged("nothing has changed", "")
}

// A signal that cannot be read is no reason to evict a Pod.
func TestBrokenHost(t *testing.T) {
	w := newWorld(t, "--eviction-hard=memory.available<100Ki,pid.available<100,nodefs.available<99%")
	w.run(podOf("only", 0, "", 1))
	w.Host.NodeFs = filepath.Join(w.proc, "nowhere")
	for file, text := range map[string]string{"loadavg": "0.1 0.2 0.3", "meminfo": ""} {
		if err := os.WriteFile(filepath.Join(w.proc, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.Pass(t.Context())
	w.logged("nothing can be read", "")
}

// figures are what Pods and containers use.
type figures map[string]cgroup.Usage

func (f figures) PodUsage(pod *corev1.Pod) (cgroup.Usage, error) { return f.of(pod.Name) }

func (f figures) ContainerUsage(_ *corev1.Pod, id string) (cgroup.Usage, error) { return f.of(id) }

func (f figures) of(name string) (cgroup.Usage, error) {
	usage, ok := f[name]
	if !ok {
		return usage, os.ErrNotExist
	}
	return usage, nil
}

func TestMeasureCgroups(t *testing.T) {
	m := Meter{Cgroups: figures{"p": {WorkingSet: 30, Memory: 99, Pids: 4}, "new": {WorkingSet: 20},
		"old": {WorkingSet: 9}}}
	p := podOf("p", 0, "", 0)
	p.Running = []observed.Container{{Name: "m", ID: "new"}, {Name: "m", ID: "old"}, {Name: "gone", ID: "gone"}}
	got, err := m.Measure(t.Context(), &p, MemoryAvailable)
	if err != nil || fmt.Sprint(got) != "{30 map[gone:0 m:20]}" {
		t.Errorf("memory %v, %v", got, err)
	}
	if got, err := m.Measure(t.Context(), &p, PIDAvailable); err != nil || got.Pod != 4 {
		t.Errorf("processes %v, %v", got, err)
	}
	none := podOf("none", 0, "", 0)
	if got, err := m.Measure(t.Context(), &none, AllocatableMemory); err != nil || got.Pod != 0 {
		t.Errorf("a Pod without a cgroup uses %v, %v", got, err)
	}
}

// BenchmarkLook measures the cost of a node that has enough of everything: one check every ten seconds.
func BenchmarkLook(b *testing.B) {
	rules := Rules{}
	for _, signal := range signals {
		rules.Thresholds = append(rules.Thresholds, Threshold{Signal: signal, Least: Amount{Percent: 0.0001}})
	}
	w := New(Config{Log: zap.NewNop(), Rules: rules, Host: &Host{Proc: "/proc", NodeFs: "/", MaxPIDs: 1 << 22,
		ImageFs: func(context.Context) (string, error) { return "/", nil }},
		Stored: func() []corev1.NodeCondition { return nil }, Changed: func() {}, Record: func(events.Event) {}})
	for b.Loop() {
		w.Pass(b.Context())
	}
}
