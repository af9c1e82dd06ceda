package cgroup_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/memory"
)

// drivers are those of this machine: test/vm runs these tests on one with systemd and version 2.
func drivers() []cgroup.Driver {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return []cgroup.Driver{cgroup.Cgroupfs}
	}
	return []cgroup.Driver{cgroup.Cgroupfs, cgroup.Systemd}
}

// setting reads a setting of a cgroup of this machine under its version 1 and version 2 names.
func setting(t *testing.T, path, controller, legacy, unified string) string {
	t.Helper()
	file := filepath.Join("/sys/fs/cgroup", controller, path, legacy)
	if cgroups.IsCgroup2UnifiedMode() {
		file = filepath.Join("/sys/fs/cgroup", path, unified)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// POD-233, SAF-085: the kernel enforces the limits, processes count as the Pod's, and removal ends them.
func TestHostLimitsHold(t *testing.T) {
	for _, driver := range drivers() {
		t.Run(string(driver), func(t *testing.T) { hostLimitsHold(t, driver) })
	}
}

func hostLimitsHold(t *testing.T, driver cgroup.Driver) {
	root := fmt.Sprintf("/keelson-test-%d", os.Getpid())
	path := root + "/poda"
	if driver == cgroup.Systemd {
		slice := fmt.Sprintf("keelson_test_%d", os.Getpid())
		root, path = "/"+slice, fmt.Sprintf("/%s.slice/%s-poda.slice", slice, slice)
	}
	kernel := cgroup.NewHost(driver)
	tree := newTree(t, kernel, driver, root)
	t.Cleanup(func() {
		if err := kernel.Remove(root); err != nil {
			t.Error(err)
		}
	})
	pod := podWith("a", corev1.PodQOSGuaranteed, amounts("500m", "64Mi"), amounts("500m", "64Mi"))
	if err := errors.Join(tree.EnsureNode(amounts("2", "1Gi")), tree.EnsurePod(pod, false)); err != nil {
		t.Fatal(err)
	}
	if tree.Mode() == cgroup.Unified {
		hostHoldsMemory(t, tree)
	}
	if got := setting(t, path, "memory", "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(64<<20) {
		t.Errorf("memory limit %s", got)
	}
	if got := setting(t, path, "cpu", "cpu.cfs_quota_us", "cpu.max"); !strings.HasPrefix(got, "50000") {
		t.Errorf("cpu quota %s", got)
	}
	if got := setting(t, path, "pids", "pids.max", "pids.max"); got != "100" {
		t.Errorf("process limit %s", got)
	}
	if swap := filepath.Join("/sys/fs/cgroup", filepath.Dir(path), "memory.swap.max"); driver == cgroup.Systemd {
		if got, err := os.ReadFile(swap); cgroups.IsCgroup2UnifiedMode() && (err != nil || string(got) != "0\n") {
			t.Errorf("all Pods together may have %q of swap (%v), want 0", got, err)
		}
	}
	process := exec.Command("sleep", "300")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	for _, controller := range []string{"memory", "cpu", "pids"} {
		dir := filepath.Join("/sys/fs/cgroup", controller, path)
		if cgroups.IsCgroup2UnifiedMode() {
			dir = filepath.Join("/sys/fs/cgroup", path)
		}
		if err := cgroups.WriteCgroupProc(dir, process.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	usage, err := tree.PodUsage(pod)
	if err != nil || usage.Pids != 1 || usage.MemoryLimit != 64<<20 {
		t.Errorf("usage %+v, %v", usage, err)
	}
	if _, err := kernel.Transfers(tree.Path(pod, "")); err != nil && driver == cgroup.Cgroupfs {
		t.Errorf("what was moved from and to disks: %v", err)
	}
	if _, err := tree.ContainerTransfers(pod, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a container has moved that is not there: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	if err := tree.RemovePod("a"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") && !strings.Contains(err.Error(),
		"terminated") {
		t.Errorf("the process ended with %v", err)
	}
}

// hostHoldsMemory gives a Burstable Pod of the tree swap and protection, and removes both. (SAF-093)
func hostHoldsMemory(t *testing.T, tree *cgroup.Tree) {
	t.Helper()
	pod := podWith("b", corev1.PodQOSBurstable, amounts("500m", "512Mi"), nil)
	above := filepath.Dir(tree.Path(pod, ""))
	limited := amounts("2", "1Gi")
	if !tree.LimitsSwap() {
		t.Error("the kernel has no memory.swap.max")
	}
	both := rulesOf(t, func(s *memory.Settings) {
		swapping(s)
		reserving(s)
	})
	for _, row := range []struct {
		rules                memory.Rules
		aboveSwap, swap, low string
	}{{both, "max", strconv.Itoa(256 << 20), strconv.Itoa(512 << 20)}, {memory.Rules{}, "0", "0", "0"}} {
		tree := tree.WithMemory(row.rules)
		shares := tree.SharesOf([]*corev1.Pod{pod})
		if err := errors.Join(tree.EnsureNode(limited), tree.EnsurePod(pod, false),
			tree.Share(limited, shares)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct{ path, file, value string }{
			{above, "memory.swap.max", row.aboveSwap}, {above, "memory.low", row.low},
			{filepath.Dir(above), "memory.swap.max", row.aboveSwap}, {filepath.Dir(above), "memory.min", row.low},
			{tree.Path(pod, ""), "memory.swap.max", row.swap}, {tree.Path(pod, ""), "memory.low", row.low},
		} {
			if got := setting(t, want.path, "", "", want.file); got != want.value {
				t.Errorf("%s of %s is %s, want %s", want.file, want.path, got, want.value)
			}
		}
	}
	if err := tree.RemovePod("b"); err != nil {
		t.Error(err)
	}
}

// The usage of a container in a systemd scope is found, and the container is killed when it has to be.
func TestScopeOfContainer(t *testing.T) {
	if !slices.Contains(drivers(), cgroup.Systemd) {
		t.Skip("systemd does not run this machine; test/vm has one")
	}
	slice := fmt.Sprintf("keelson_scope_%d", os.Getpid())
	kernel := cgroup.NewHost(cgroup.Systemd)
	tree := newTree(t, kernel, cgroup.Systemd, "/"+slice)
	t.Cleanup(func() {
		if err := kernel.Remove("/" + slice); err != nil {
			t.Error(err)
		}
	})
	pod := podWith("a", corev1.PodQOSGuaranteed, amounts("500m", "64Mi"), amounts("500m", "64Mi"))
	if err := errors.Join(tree.EnsureNode(amounts("2", "1Gi")), tree.EnsurePod(pod, false)); err != nil {
		t.Fatal(err)
	}
	process := exec.Command("systemd-run", "--scope", "--slice="+slice+"-poda.slice", "--unit=cri-containerd-c1.scope",
		"sleep", "300")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	deadline := time.After(time.Minute)
	for {
		usage, err := tree.ContainerUsage(pod, "c1")
		if err == nil && usage.Pids > 0 {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("nothing is known of the container: %+v, %v", usage, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := tree.KillContainer(pod, "c1"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-deadline:
		t.Error("its process goes on")
	}
}
