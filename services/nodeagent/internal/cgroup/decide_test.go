package cgroup

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/systemd"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/memory"
)

func TestSliceNames(t *testing.T) {
	for path, want := range map[string]string{
		"/kubepods":                  "kubepods.slice",
		"/kubepods/burstable/podA-1": "kubepods-burstable-podA_1.slice",
		"/keelson/node-1/kubepods":   "keelson-node_1-kubepods.slice",
	} {
		if got := SliceName(path); got != want {
			t.Errorf("SliceName(%s) = %s, want %s", path, got, want)
		}
	}
	slices, plain := NewHost(Systemd), NewHost(Cgroupfs)
	if got := slices.nameOf("kubepods-burstable-pod12_ab.slice"); got != "pod12-ab" {
		t.Errorf("got %s", got)
	}
	if got := plain.nameOf("pod12-ab"); got != "pod12-ab" {
		t.Errorf("got %s", got)
	}
}

// A slice is inside the one above it, and a container in the scope that its runtime has created in the slice of the
// Pod: with any other path, its usage would be missing and none of its processes would be killed.
func TestPathsOfUnits(t *testing.T) {
	for path, want := range map[string]string{
		"/kubepods":                  "/kubepods.slice",
		"/kubepods/burstable/podA-1": "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podA_1.slice",
		"/keelson/node-1":            "/keelson.slice/keelson-node_1.slice",
		"/kubepods/podA-1/cri-containerd-4f2a.scope": "/kubepods.slice/kubepods-podA_1.slice/cri-containerd-4f2a.scope",
	} {
		unit := unitOf(path)
		m, err := systemd.NewUnifiedManager(unit, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(m.Path(""), mountRoot); got != want {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
	}
}

// Path returns the path at which the kernel has the cgroup.
func TestPath(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a-1"},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable}}
	for driver, want := range map[Driver]string{
		Cgroupfs: "/kubepods /kubepods/burstable/poda-1 /kubepods/burstable/poda-1/c",
		Systemd: "/kubepods.slice /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_1.slice " +
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_1.slice/cri-containerd-c.scope",
	} {
		tree, err := NewTree(NewHost(driver), driver, "/kubepods", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.Path(nil, "") + " " + tree.Path(pod, "") + " " + tree.Path(pod, "c"); got != want {
			t.Errorf("%s: %s, want %s", driver, got, want)
		}
	}
}

// Transfers are reported by disk; the kernel's sums and other counters are not added.
func TestTransfersOf(t *testing.T) {
	entry := func(minor uint64, op string, value uint64) cgroups.BlkioStatEntry {
		return cgroups.BlkioStatEntry{Major: 8, Minor: minor, Op: op, Value: value}
	}
	got := transfersOf(cgroups.BlkioStats{
		IoServiceBytesRecursive: []cgroups.BlkioStatEntry{entry(16, "Read", 5), entry(0, "Write", 3),
			entry(0, "Total", 9), entry(0, "Read", 1)},
		IoServicedRecursive: []cgroups.BlkioStatEntry{entry(0, "Write", 2), entry(0, "Sync", 9), entry(16, "Read", 4)},
	})
	want := []Transfer{{Major: 8, Minor: 0, Writes: 2, BytesRead: 1, BytesWritten: 3},
		{Major: 8, Minor: 16, Reads: 4, BytesRead: 5}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The same figures under the names of both versions.
func TestUsageOf(t *testing.T) {
	stats := cgroups.NewStats()
	stats.CpuStats.CpuUsage.TotalUsage = 5
	stats.MemoryStats.Usage = cgroups.MemoryData{Usage: 1000, Limit: 1 << 63}
	stats.PidsStats.Current = 3
	stats.CpuStats.CpuUsage.UsageInUsermode, stats.CpuStats.CpuUsage.UsageInKernelmode = 3, 2
	stats.CpuStats.ThrottlingData = cgroups.ThrottlingData{Periods: 6, ThrottledPeriods: 4, ThrottledTime: 9}
	stats.MemoryStats.Usage.MaxUsage, stats.MemoryStats.Usage.Failcnt = 1200, 8
	stats.MemoryStats.SwapUsage.Usage = 1050 // includes memory
	want := Usage{CPUNanos: 5, CPUUserNanos: 3, CPUSystemNanos: 2, Periods: 6, ThrottledPeriods: 4, ThrottledNanos: 9,
		Memory: 1000, WorkingSet: 700, RSS: 200, Cache: 400, Mapped: 60, MaxMemory: 1200, Swap: 50, MemoryFailures: 8,
		PageFaults: 7, MajorFaults: 1, Pids: 3}
	stats.MemoryStats.Stats = map[string]uint64{"total_inactive_file": 300, "total_rss": 200, "total_cache": 400,
		"total_mapped_file": 60, "total_pgfault": 7, "total_pgmajfault": 1}
	if got := usageOf(stats, Hybrid); got != want {
		t.Errorf("hybrid: %+v", got)
	}
	stats.MemoryStats.Stats = map[string]uint64{"inactive_file": 300, "anon": 200, "file": 400, "file_mapped": 60,
		"pgfault": 7, "pgmajfault": 1}
	stats.MemoryStats.SwapOnlyUsage = cgroups.MemoryData{Usage: 50, Limit: 70}
	for i, psi := range []**cgroups.PSIStats{&stats.CpuStats.PSI, &stats.MemoryStats.PSI, &stats.BlkioStats.PSI} {
		*psi = &cgroups.PSIStats{Some: cgroups.PSIData{Total: uint64(i) + 1}}
	}
	stalled := usageOf(stats, Unified).Stalls
	if stalled.CPU.Some.Total != 1 || stalled.Memory.Some.Total != 2 || stalled.IO.Some.Total != 3 {
		t.Errorf("stalls %+v", stalled)
	}
	stats.CpuStats.PSI, stats.MemoryStats.PSI, stats.BlkioStats.PSI = nil, nil, nil
	want.SwapLimited, want.SwapLimit = true, 70
	if got := usageOf(stats, Unified); got != want {
		t.Errorf("v2: %+v", got)
	}
	stats.MemoryStats.SwapOnlyUsage.Limit = math.MaxUint64 // the library's value for max
	if got := usageOf(stats, Unified); got.SwapLimited || got.SwapLimit != 0 {
		t.Errorf("all swap: %+v", got)
	}
	stats.MemoryStats.Stats["inactive_file"] = 2000
	if got := usageOf(stats, Unified); got.WorkingSet != 0 {
		t.Errorf("working set %d", got.WorkingSet)
	}
}

// All settings that the kernel has are written, which removes those of an earlier agent.
func TestUnifiedOf(t *testing.T) {
	all := func(string) bool { return true }
	for _, row := range []struct {
		name   string
		limits Limits
		has    func(string) bool
		want   map[string]string
	}{
		{"nothing", Limits{}, all, map[string]string{memory.SwapMax: "0", memory.Min: "0", memory.Low: "0"}},
		{"some", Limits{Swap: 1, Protection: memory.Protection{Min: 2, Low: 3}}, all,
			map[string]string{memory.SwapMax: "1", memory.Min: "2", memory.Low: "3"}},
		{"all swap", Limits{Swap: Unlimited}, all,
			map[string]string{memory.SwapMax: "max", memory.Min: "0", memory.Low: "0"}},
		{"a kernel without swap", Limits{}, func(s string) bool { return s != memory.SwapMax },
			map[string]string{memory.Min: "0", memory.Low: "0"}},
	} {
		if got := row.limits.unified(row.has); !maps.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// A Pod is recognized by the name of its cgroup, and nothing else is taken for a Pod.
func TestNamesOfPods(t *testing.T) {
	for class, want := range map[corev1.PodQOSClass]string{corev1.PodQOSGuaranteed: "/k/podu-1",
		corev1.PodQOSBurstable: "/k/burstable/podu-1", corev1.PodQOSBestEffort: "/k/besteffort/podu-1"} {
		if got := podPath("/k", class, "u-1"); got != want {
			t.Errorf("the cgroup of a Pod that is %s is %s, want %s", class, got, want)
		}
	}
	for name, want := range map[string]types.UID{"podu-1": "u-1", "podpod": "pod", "pod": "", "burstable": "", "": "",
		"mypodu-1": ""} {
		if uid, ok := uidOf(name); ok != (want != "") || ok && uid != want {
			t.Errorf("%q is of Pod %q (%v), want %q", name, uid, ok, want)
		}
	}
}
