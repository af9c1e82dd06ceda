package stats

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

var update = flag.Bool("update-testdata", false, "write the golden files anew")

// scrapeCAdvisor returns cadvisor's metrics, without the comments.
func scrapeCAdvisor(c *Collector) []string {
	w := httptest.NewRecorder()
	c.CAdvisor().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics/cadvisor", nil))
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(w.Body.String()), "\n"),
		func(line string) bool { return strings.HasPrefix(line, "#") })
}

// full returns figures of every kind.
type full struct{ figures }

func (full) ContainerUsage(*corev1.Pod, string) (cgroup.Usage, error) {
	return cgroup.Usage{CPUNanos: 3e9, CPUUserNanos: 2e9, CPUSystemNanos: 1e9, Periods: 7, ThrottledPeriods: 6,
		ThrottledNanos: 5e8, Memory: 99, WorkingSet: 98, RSS: 97, Cache: 96, Mapped: 95, MaxMemory: 94, Swap: 93,
		MemoryFailures: 92, MemoryLimit: 91, PageFaults: 90, MajorFaults: 89, Pids: 88,
		Stalls: cgroup.Stalls{CPU: &cgroup.Stall{Some: cgroup.Waits{Total: 2_500_000}, Full: cgroup.Waits{Total: 1}},
			Memory: &cgroup.Stall{}, IO: &cgroup.Stall{Some: cgroup.Waits{Total: 3_000_000}}}}, nil
}

// Everything that is known of a container, its Pod, the Pod's network and the machine is reported under cadvisor's
// names and labels.
func TestCAdvisor(t *testing.T) {
	proc, sys := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{"stat": "cpu 1 1 1 1 1 1 1 1 1\nbtime 1\n",
		"meminfo": "MemTotal: 9 kB\nMemFree: 6 kB\nMemAvailable: 8 kB\nSwapTotal: 2 kB\n"} {
		if err := os.WriteFile(filepath.Join(proc, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(proc, "pressure"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "pressure", "cpu"),
		[]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=4000000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	lay(t, proc, "self", "up0: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n")
	lay(t, proc, "7", "eth0: 11 12 13 14 0 0 0 0 15 16 17 18 0 0 0 0\n")
	disk := filepath.Join(sys, "dev/block/8:1")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(disk, "uevent"), []byte("MAJOR=8\nDEVNAME=sda1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	amount := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse(cpu)}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "web", Namespace: "ns"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: amount("250m"),
			Limits: amount("500m")}}}}}
	synctest.Test(t, func(t *testing.T) {
		f := &full{figures{cpu: 4e9, pids: []int{7}}}
		c := NewCollector(Config{Proc: proc, Sys: sys, Root: proc, Usage: f, MilliCPU: 2000,
			Machine: corev1.NodeSystemInfo{BootID: "b", MachineID: "m", SystemUUID: "s"},
			Disk: func(context.Context) *diskusage.Found {
				t.Error("a survey is waited for")
				return nil
			},
			DiskKnown: func() *diskusage.Found {
				return &diskusage.Found{At: time.Unix(9, 0), Images: &diskusage.Images{
					Space: diskusage.Space{Bytes: 900}, ImageFs: runtime.ImageFs{Dir: "/no/such/folder"}},
					Pods: map[types.UID]diskusage.Parcel{"u": {Layers: map[string]diskusage.Usage{"app": {Bytes: 30}}}}}
			},
			Pods: func() []Pod {
				return []Pod{{Pod: pod, Running: []observed.Container{{ID: "c1", Name: "app", Image: "registry/app:1",
					SandboxID: "s1", StartedAt: time.Unix(5, 0)}}},
					{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "nameless"}}}}
			}})
		pass(1500 * time.Millisecond)
		want, err := os.ReadFile("testdata/cadvisor.txt")
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(scrapeCAdvisor(c), "\n") + "\n"
		if *update {
			if err := os.WriteFile("testdata/cadvisor.txt", []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got != string(want) {
			t.Errorf("got\n%s", got)
		}
		c.config.OwnCPUs = func(uid types.UID, container string) bool { return uid == "u" && container == "app" }
		if lines := strings.Join(scrapeCAdvisor(c), "\n"); strings.Contains(lines, "cpu_quota") {
			t.Errorf("on processors of its own a container has a quota:\n%s", lines)
		}
		f.broken = true
		if !slices.Contains(scrapeCAdvisor(c), "container_scrape_error 1") {
			t.Error("a disk that cannot be read is not told of")
		}
	})
}

// What the kernel does not count is left out; a Pod that is being ended is reported beside the next one of its
// name.
func TestCAdvisorLeavesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector(t, &figures{cpu: 4e9})
		lines := strings.Join(scrapeCAdvisor(c), "\n")
		for _, never := range []string{"cfs_periods", "fs_usage", "network", `container="side"`, "cpu_quota"} {
			if strings.Contains(lines, never) {
				t.Errorf("%s is told of:\n%s", never, lines)
			}
		}
		both := regexp.MustCompile(`container_cpu_usage_seconds_total\{container="",cpu="total",id="/pods/(u|old)"`)
		if n := len(both.FindAllString(lines, -1)); n != 2 {
			t.Errorf("%d Pods of the name", n)
		}
	})
}

func TestDevices(t *testing.T) {
	d := newDevices(t.TempDir())
	if got := d.name(253, 7) + " " + d.of("/no/such/folder"); got != "253:7 " {
		t.Errorf("disks that nobody names: %q", got)
	}
}
