package cgroup_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/cgroup/cgroupfake"
	"keelson.dev/services/nodeagent/internal/memory"
)

// rulesOf returns the rules of a machine with 4 GiB of memory and 2 GiB of swap.
func rulesOf(t *testing.T, set func(*memory.Settings)) memory.Rules {
	t.Helper()
	s := memory.DefaultSettings()
	set(&s)
	rules, err := s.Rules(memory.Machine{CgroupV2: true, Memory: 4 << 30, Allocatable: 4 << 30, Swap: 2 << 30,
		PageSize: 4096})
	if err == nil {
		rules, err = rules.OnKernel(true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func swapping(s *memory.Settings) { s.SwapBehavior = "LimitedSwap" }

func reserving(s *memory.Settings) { s.ReservationPolicy = "TieredReservation" }

// SAF-093: the cgroups above a container allow the swap of its Pod, and are protected as far as those below them.
func TestSwapAndProtectionOfCgroups(t *testing.T) {
	pods := []*corev1.Pod{
		podWith("a", corev1.PodQOSGuaranteed, amounts("1", "1Gi"), amounts("1", "1Gi")),
		podWith("b", corev1.PodQOSBurstable, amounts("1", "512Mi"), nil),
		podWith("c", corev1.PodQOSBestEffort, nil, nil),
	}
	type held struct {
		swap      int64
		protected memory.Protection
	}
	for _, row := range []struct {
		name string
		set  func(*memory.Settings)
		want map[string]held
	}{
		{"nothing set", func(*memory.Settings) {}, map[string]held{"/k": {}, "/k/burstable": {}, "/k/besteffort": {},
			"/k/poda": {}, "/k/burstable/podb": {}, "/k/besteffort/podc": {}}},
		{"limited swap", swapping, map[string]held{"/k": {swap: cgroup.Unlimited},
			"/k/burstable": {swap: cgroup.Unlimited}, "/k/besteffort": {}, "/k/poda": {},
			"/k/burstable/podb": {swap: 256 << 20}, "/k/besteffort/podc": {}}},
		{"reservation", reserving, map[string]held{"/k": {protected: memory.Protection{Min: 1536 << 20}},
			"/k/burstable": {protected: memory.Protection{Low: 512 << 20}}, "/k/besteffort": {},
			"/k/poda":           {protected: memory.Protection{Min: 1 << 30}},
			"/k/burstable/podb": {protected: memory.Protection{Low: 512 << 20}}, "/k/besteffort/podc": {}}},
	} {
		kernel := cgroupfake.New(cgroup.Unified)
		tree := newTree(t, kernel, cgroup.Cgroupfs, "/k").WithMemory(rulesOf(t, row.set))
		err := tree.EnsureNode(amounts("4", "2Gi"))
		for _, pod := range pods {
			err = errors.Join(err, tree.EnsurePod(pod, false))
		}
		if err = errors.Join(err, tree.Share(amounts("4", "2Gi"), tree.SharesOf(pods))); err != nil {
			t.Fatal(err)
		}
		for path, want := range row.want {
			limits, ok := kernel.Limits(path)
			if got := (held{limits.Swap, limits.Protection}); got != want || !ok {
				t.Errorf("%s: %s has %+v, want %+v", row.name, path, got, want)
			}
		}
		if all, _ := kernel.Limits("/k"); all.Memory != 2<<30 {
			t.Errorf("%s: all Pods may use %d bytes", row.name, all.Memory)
		}
	}
}
