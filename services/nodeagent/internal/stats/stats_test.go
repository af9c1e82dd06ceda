package stats

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/volumestats"
)

// figures returns usage for two Pods, of which only one has a cgroup.
type figures struct {
	cpu    uint64
	broken bool
	pids   []int
}

func (f *figures) Processes(*corev1.Pod, string) ([]int, error) { return f.pids, nil }

func (f *figures) ContainerTransfers(_ *corev1.Pod, id string) ([]cgroup.Transfer, error) {
	if f.broken {
		return nil, errors.New("not readable")
	}
	return []cgroup.Transfer{{Major: 8, Minor: 1, Reads: 1, Writes: 2, BytesRead: 3, BytesWritten: 4}}, nil
}

func (f *figures) Path(pod *corev1.Pod, id string) string {
	if pod == nil {
		return "/pods"
	}
	return path.Join("/pods", string(pod.UID), id)
}

func (f *figures) NodeUsage() (cgroup.Usage, error) { return cgroup.Usage{CPUNanos: 5}, nil }

func (f *figures) PodUsage(pod *corev1.Pod) (cgroup.Usage, error) {
	if pod.UID == "gone" {
		return cgroup.Usage{}, fs.ErrNotExist
	}
	return cgroup.Usage{CPUNanos: f.cpu, Memory: 300, WorkingSet: 200, RSS: 100, MemoryLimit: 1000, Pids: 4,
		Swap: 5}, nil
}

func (f *figures) ContainerUsage(_ *corev1.Pod, id string) (cgroup.Usage, error) {
	if id == "ended" {
		return cgroup.Usage{}, fs.ErrNotExist
	}
	if f.broken {
		return cgroup.Usage{}, errors.New("not readable")
	}
	return cgroup.Usage{CPUNanos: f.cpu / 2, Memory: 10, WorkingSet: 20, Swap: 3, SwapLimited: true, SwapLimit: 7}, nil
}

func collector(t *testing.T, f *figures) *Collector {
	return NewCollector(Config{
		NodeName: "n1", Proc: "/proc", Root: t.TempDir(), Usage: f,
		Disk:      func(context.Context) *diskusage.Found { return nil },
		DiskKnown: func() *diskusage.Found { return nil },
		Drivers: func(context.Context) volumestats.Answers {
			return func(*corev1.Pod, *corev1.Volume) (volumestats.Figures, bool) { return volumestats.Figures{}, false }
		},
		Pods: func() []Pod {
			web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "web", Namespace: "ns"}}
			old := web.DeepCopy()
			old.UID = "old"
			instance := observed.Container{ID: "c1", Name: "app", StartedAt: time.Unix(5, 500_000_000)}
			earlier := observed.Container{ID: "c0", Name: "app"}
			return []Pod{
				{Pod: web, Running: []observed.Container{instance, earlier, {ID: "ended", Name: "side"}}},
				{Pod: old, Removed: true, Running: []observed.Container{earlier}},
				{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "gone"}},
					Running: []observed.Container{{ID: "ended"}}},
			}
		},
	})
}

func TestSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &figures{cpu: 1000}
		c := collector(t, f)
		summary, err := c.Summary(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		node := summary.Node
		if node.NodeName != "n1" || *node.Memory.WorkingSetBytes == 0 || *node.Fs.CapacityBytes == 0 ||
			*node.CPU.UsageCoreNanoSeconds == 0 || node.StartTime.IsZero() {
			t.Errorf("node %+v", node)
		}
		if len(summary.Pods) != 3 || summary.Pods[2].CPU != nil || len(summary.Pods[2].Containers) != 0 {
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
		if *pod.Swap.SwapUsageBytes != 5 || pod.Swap.SwapAvailableBytes != nil || summary.Pods[2].Swap != nil {
			t.Errorf("swap of the Pod %+v, of one that has gone %+v", pod.Swap, summary.Pods[2].Swap)
		}
		if swap := pod.Containers[0].Swap; *swap.SwapUsageBytes != 3 || *swap.SwapAvailableBytes != 4 {
			t.Errorf("swap of the container %+v", swap)
		}
		pass(2 * time.Second)
		f.cpu += 3e9
		summary, _ = c.Summary(t.Context(), false)
		if got := summary.Pods[0].CPU.UsageNanoCores; got == nil || *got != 15e8 {
			t.Errorf("rate %v", got)
		}
	})
}

// DEP-212: the resource metrics have the kubelet's names, with the time of each reading.
func TestResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &figures{cpu: 3e9}
		c := collector(t, f)
		pass(1500 * time.Millisecond)
		got := scrape(c)
		at := " 946684801500\n"
		labels := `container="app",namespace="ns",pod="web"`
		for _, want := range []string{
			"resource_scrape_error 0\n",
			"container_cpu_usage_seconds_total{" + labels + "} 1.5" + at,
			"container_memory_working_set_bytes{" + labels + "} 20" + at,
			"container_swap_usage_bytes{" + labels + "} 3" + at,
			"container_swap_limit_bytes{" + labels + "} 7" + at,
			"container_start_time_seconds{" + labels + "} 5.5\n",
			`pod_swap_usage_bytes{namespace="ns",pod="web"} 5` + at,
			"# TYPE node_swap_usage_bytes gauge\nnode_swap_usage_bytes ",
			`pod_cpu_usage_seconds_total{namespace="ns",pod="web"} 3` + at,
			`pod_memory_working_set_bytes{namespace="ns",pod="web"} 200` + at,
			"# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total ",
			"# TYPE node_memory_working_set_bytes gauge\nnode_memory_working_set_bytes ",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q", want)
			}
		}
		if n := len(regexp.MustCompile("(?m)^[a-z]").FindAllString(got, -1)); n != 12 {
			t.Errorf("%d samples, want 12: one Pod has that name, one instance that container, and no others run:\n%s",
				n, got)
		}
		f.broken = true
		pass(time.Second)
		if got := scrape(c); !strings.Contains(got, "resource_scrape_error 1\n") ||
			strings.Contains(got, "container_cpu") || !strings.Contains(got, "pod_cpu") {
			t.Errorf("with a cgroup that cannot be read:\n%s", got)
		}
	})
}

// scrape returns the resource metrics as text.
func scrape(c *Collector) string {
	w := httptest.NewRecorder()
	c.Resource().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics/resource", nil))
	return w.Body.String()
}

func TestRates(t *testing.T) {
	r, begin := rates{earlier: map[string]earlier{}}, time.Unix(0, 0)
	at := func(d time.Duration, nanos uint64) *uint64 { return r.cores("x", nanos, begin.Add(d)) }
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
		"MemTotal:  100 kB\nMemFree: 10 kB\nMemAvailable: 60 kB\nSwapTotal: 9 kB\nSwapFree: 4 kB\nVmallocTotal: 5 kB\n")
	want := host{boot: time.Unix(77, 0), cpuNanos: 21 * 1e7, memoryTotal: 100 << 10, memoryFree: 10 << 10,
		memoryAvailable: 60 << 10, swapTotal: 9 << 10, swapFree: 4 << 10}
	if h != want {
		t.Errorf("got %+v", h)
	}
	if _, err := readHost(t.TempDir()); err == nil {
		t.Error("a missing proc file system was read")
	}
}

// pass lets time go by in the bubble of a test.
func pass(d time.Duration) { <-time.After(d) }
