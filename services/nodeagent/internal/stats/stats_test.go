package stats

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/observed"
)

// figures answers for two Pods, of which only one has a cgroup.
type figures struct{ cpu uint64 }

func (f *figures) NodeUsage() (cgroup.Usage, error) { return cgroup.Usage{CPUNanos: 5}, nil }

func (f *figures) PodUsage(pod *corev1.Pod) (cgroup.Usage, error) {
	if pod.UID == "gone" {
		return cgroup.Usage{}, fs.ErrNotExist
	}
	return cgroup.Usage{CPUNanos: f.cpu, Memory: 300, WorkingSet: 200, RSS: 100, MemoryLimit: 1000, Pids: 4}, nil
}

func (f *figures) ContainerUsage(*corev1.Pod, string) (cgroup.Usage, error) {
	return cgroup.Usage{CPUNanos: f.cpu / 2, Memory: 10, WorkingSet: 20}, nil
}

func collector(t *testing.T, f *figures) *Collector {
	return NewCollector(Config{
		NodeName: "n1", Root: t.TempDir(), Usage: f,
		Pods: func() []*corev1.Pod {
			return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "web", Namespace: "ns"}},
				{ObjectMeta: metav1.ObjectMeta{UID: "gone"}}}
		},
		State: func(_ context.Context, uid string) (observed.Pod, error) {
			if uid == "gone" {
				return observed.Pod{}, errors.New("no answer")
			}
			return observed.Pod{Containers: []observed.Container{{ID: "c1", Name: "app", State: observed.Running},
				{ID: "c0", Name: "app", State: observed.Exited}}}, nil
		},
	})
}

func TestSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &figures{cpu: 1000}
		c := collector(t, f)
		summary, err := c.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		node := summary.Node
		if node.NodeName != "n1" || *node.Memory.WorkingSetBytes == 0 || *node.Fs.CapacityBytes == 0 ||
			*node.CPU.UsageCoreNanoSeconds == 0 || node.StartTime.IsZero() {
			t.Errorf("node %+v", node)
		}
		if len(summary.Pods) != 2 || summary.Pods[1].CPU != nil || len(summary.Pods[1].Containers) != 0 {
			t.Fatalf("pods %+v", summary.Pods)
		}
		pod := summary.Pods[0]
		if pod.PodRef.Name != "web" || *pod.Memory.WorkingSetBytes != 200 || *pod.Memory.AvailableBytes != 800 ||
			*pod.ProcessStats.ProcessCount != 4 {
			t.Errorf("pod %+v", pod)
		}
		if len(pod.Containers) != 1 || pod.Containers[0].Memory.AvailableBytes != nil || pod.CPU.UsageNanoCores != nil {
			t.Errorf("containers %+v, cpu %+v", pod.Containers, pod.CPU)
		}
		pass(2 * time.Second)
		f.cpu += 3e9
		summary, _ = c.Summary(t.Context())
		if got := summary.Pods[0].CPU.UsageNanoCores; got == nil || *got != 15e8 {
			t.Errorf("rate %v", got)
		}
	})
}

func TestRates(t *testing.T) {
	r, begin := rates{earlier: map[string]reading{}}, time.Unix(0, 0)
	at := func(d time.Duration, nanos uint64) *uint64 { return r.cpu("x", nanos, begin.Add(d)).UsageNanoCores }
	if got := at(0, 10); got != nil {
		t.Errorf("first reading: %d", *got)
	}
	if got := at(time.Millisecond, 20); got != nil {
		t.Errorf("too soon: %d", *got)
	}
	if got := at(2*time.Second, 10+2e9); got == nil || *got != 1e9 {
		t.Errorf("after two seconds: %v", got)
	}
	if got := at(2*time.Second+1, 10+3e9); got == nil || *got != 1e9 {
		t.Errorf("too soon again: %v", got)
	}
	if got := at(4*time.Second, 5); got != nil {
		t.Errorf("began again: %d", *got)
	}
	r.forget(begin.Add(time.Hour))
	if len(r.earlier) != 0 {
		t.Error("nothing was forgotten")
	}
}

func TestParseHost(t *testing.T) {
	h := parseHost("cpu  1 2 3 1000 1000 4 5 6 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\nbtime 77\n",
		"MemTotal:  100 kB\nMemFree: 10 kB\nMemAvailable: 60 kB\nVmallocTotal: 5 kB\n")
	want := host{boot: time.Unix(77, 0), cpuNanos: 21 * 1e7, memoryTotal: 100 << 10, memoryFree: 10 << 10,
		memoryAvailable: 60 << 10}
	if h != want {
		t.Errorf("got %+v", h)
	}
	if _, err := readHost(t.TempDir()); err == nil {
		t.Error("a missing proc file system was read")
	}
}

// pass lets time go by in the bubble of a test.
func pass(d time.Duration) { <-time.After(d) }
