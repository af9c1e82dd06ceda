package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"golang.org/x/sys/unix"

	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/qos"
)

// mountRoot is where hosts mount their hierarchies.
const mountRoot = "/sys/fs/cgroup"

// Host is the Kernel of this machine.
type Host struct{ driver Driver }

// NewHost returns the Kernel of this machine for the driver that its container runtime uses.
func NewHost(driver Driver) *Host { return &Host{driver: driver} }

// Mode implements Kernel.
func (*Host) Mode() Mode {
	switch {
	case cgroups.IsCgroup2UnifiedMode():
		return Unified
	case cgroups.IsCgroup2HybridMode():
		return Hybrid
	}
	return Legacy
}

// Ensure implements Kernel.
func (h *Host) Ensure(cgroupPath string, limits Limits) error {
	m, err := h.manager(cgroupPath)
	if err != nil {
		return err
	}
	if err := m.Apply(-1); err != nil {
		return fmt.Errorf("making cgroup %s: %w", cgroupPath, err)
	}
	resources := h.resources(limits)
	if h.Mode() == Unified {
		resources.Unified = limits.unified(func(setting string) bool { return exists(m, setting) })
	}
	if err := m.Set(resources); err != nil {
		return fmt.Errorf("setting limits of cgroup %s: %w", cgroupPath, err)
	}
	return nil
}

// exists reports whether a cgroup of version 2 has a setting.
func exists(m cgroups.Manager, setting string) bool {
	_, err := os.Stat(filepath.Join(m.Path(""), setting))
	return err == nil
}

// LimitsSwap implements Kernel.
func (h *Host) LimitsSwap(cgroupPath string) bool {
	m, err := h.manager(cgroupPath)
	return err == nil && h.Mode() == Unified && exists(m, memory.SwapMax)
}

// manager returns the library's view of one cgroup.
func (h *Host) manager(cgroupPath string) (cgroups.Manager, error) {
	config := &cgroups.Cgroup{Path: cgroupPath}
	if h.driver == Systemd {
		config = unitOf(cgroupPath)
	}
	config.Resources = &cgroups.Resources{SkipDevices: true}
	m, err := manager.New(config)
	if err != nil {
		return nil, fmt.Errorf("opening cgroup %s: %w", cgroupPath, err)
	}
	return m, nil
}

// unitOf returns systemd's unit for a path: a slice, or the scope in which the runtime keeps a container.
func unitOf(cgroupPath string) *cgroups.Cgroup {
	parent := "-.slice"
	if dir := path.Dir(cgroupPath); dir != "/" {
		parent = SliceName(dir)
	}
	unit := &cgroups.Cgroup{Systemd: true, Parent: parent, Name: SliceName(cgroupPath)}
	if scope, ok := strings.CutSuffix(path.Base(cgroupPath), scopeSuffix); ok {
		last := strings.LastIndex(scope, "-")
		unit.ScopePrefix, unit.Name = scope[:max(last, 0)], scope[last+1:]
	}
	return unit
}

func (h *Host) resources(limits Limits) *cgroups.Resources {
	r := &cgroups.Resources{SkipDevices: true, CpuPeriod: qos.CPUPeriod, CpuQuota: -1, Memory: -1}
	if limits.CPUQuota > 0 {
		r.CpuQuota = limits.CPUQuota
	}
	if limits.Memory > 0 {
		r.Memory = limits.Memory
	}
	pids := int64(-1)
	if limits.Pids > 0 {
		pids = limits.Pids
	}
	r.PidsLimit = &pids
	if h.Mode() == Unified {
		r.CpuWeight = cgroups.ConvertCPUSharesToCgroupV2Value(uint64(limits.CPUShares))
	} else {
		r.CpuShares = uint64(limits.CPUShares)
	}
	return r
}

// Remove implements Kernel.
func (h *Host) Remove(cgroupPath string) error {
	m, err := h.manager(cgroupPath)
	if err != nil {
		return err
	}
	if err := kill(m.GetPaths()); err != nil {
		return err
	}
	if err := m.Destroy(); err != nil {
		return fmt.Errorf("removing cgroup %s: %w", cgroupPath, err)
	}
	return nil
}

// Kill implements Kernel.
func (h *Host) Kill(cgroupPath string) error {
	m, err := h.manager(cgroupPath)
	if err != nil {
		return err
	}
	return kill(m.GetPaths())
}

// kill ends every process that is left in the hierarchies.
func kill(paths map[string]string) error {
	for _, dir := range paths {
		pids, err := cgroups.GetAllPids(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("listing processes of %s: %w", dir, err)
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("killing process %d of %s: %w", pid, dir, err)
			}
		}
	}
	return nil
}

// Usage implements Kernel.
func (h *Host) Usage(cgroupPath string) (Usage, error) {
	controllers := cgroups.CPU | cgroups.Memory | cgroups.Pids
	if h.Mode() == Unified {
		controllers |= cgroups.IO // for how long its processes have waited for disks
	}
	stats, err := h.stats(cgroupPath, controllers)
	if err != nil {
		return Usage{}, err
	}
	return usageOf(stats, h.Mode()), nil
}

// Transfers implements Kernel.
func (h *Host) Transfers(cgroupPath string) ([]Transfer, error) {
	stats, err := h.stats(cgroupPath, cgroups.IO)
	if err != nil {
		return nil, err
	}
	return transfersOf(stats.BlkioStats), nil
}

func (h *Host) stats(cgroupPath string, controllers cgroups.Controller) (*cgroups.Stats, error) {
	m, err := h.manager(cgroupPath)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(m.GetPaths())), cgroups.PathExists) {
		return nil, fmt.Errorf("cgroup %s: %w", cgroupPath, fs.ErrNotExist)
	}
	stats, err := m.Stats(&cgroups.StatsOptions{Controllers: controllers})
	if err != nil {
		return nil, fmt.Errorf("reading cgroup %s: %w", cgroupPath, err)
	}
	return stats, nil
}

// transfersOf combines the figures of each disk, sorted by its numbers. It skips the kernel's sums of these.
func transfersOf(told cgroups.BlkioStats) []Transfer {
	all := map[[2]uint64]*Transfer{}
	add := func(entries []cgroups.BlkioStatEntry, into map[string]func(*Transfer) *uint64) {
		for _, e := range entries {
			field := into[e.Op]
			if field == nil {
				continue
			}
			key := [2]uint64{e.Major, e.Minor}
			if all[key] == nil {
				all[key] = &Transfer{Major: e.Major, Minor: e.Minor}
			}
			*field(all[key]) += e.Value
		}
	}
	add(told.IoServiceBytesRecursive, map[string]func(*Transfer) *uint64{
		"Read":  func(t *Transfer) *uint64 { return &t.BytesRead },
		"Write": func(t *Transfer) *uint64 { return &t.BytesWritten }})
	add(told.IoServicedRecursive, map[string]func(*Transfer) *uint64{
		"Read":  func(t *Transfer) *uint64 { return &t.Reads },
		"Write": func(t *Transfer) *uint64 { return &t.Writes }})
	out := make([]Transfer, 0, len(all))
	for _, t := range all {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Transfer) int {
		return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
	})
	return out
}

// usageOf converts the figures; their names differ between the versions.
func usageOf(stats *cgroups.Stats, mode Mode) Usage {
	cpu, throttling, ram := stats.CpuStats.CpuUsage, stats.CpuStats.ThrottlingData, stats.MemoryStats
	inactive, rss, cache, mapped, prefix := "total_inactive_file", "total_rss", "total_cache", "total_mapped_file",
		"total_"
	swap := ram.SwapUsage.Usage - min(ram.SwapUsage.Usage, ram.Usage.Usage) // SwapUsage includes memory
	if mode == Unified {
		inactive, rss, cache, mapped, prefix = "inactive_file", "anon", "file", "file_mapped", ""
		swap = ram.SwapOnlyUsage.Usage
	}
	usage := Usage{
		CPUNanos: cpu.TotalUsage, CPUUserNanos: cpu.UsageInUsermode, CPUSystemNanos: cpu.UsageInKernelmode,
		Periods: throttling.Periods, ThrottledPeriods: throttling.ThrottledPeriods,
		ThrottledNanos: throttling.ThrottledTime,
		Memory:         ram.Usage.Usage,
		WorkingSet:     ram.Usage.Usage - min(ram.Usage.Usage, ram.Stats[inactive]),
		RSS:            ram.Stats[rss],
		Cache:          ram.Stats[cache], Mapped: ram.Stats[mapped], MaxMemory: ram.Usage.MaxUsage,
		Swap: swap, MemoryFailures: ram.Usage.Failcnt,
		PageFaults:  ram.Stats[prefix+"pgfault"],
		MajorFaults: ram.Stats[prefix+"pgmajfault"],
		Pids:        stats.PidsStats.Current,
		Stalls: Stalls{CPU: stallOf(stats.CpuStats.PSI), Memory: stallOf(ram.PSI),
			IO: stallOf(stats.BlkioStats.PSI)},
	}
	if swap := ram.SwapOnlyUsage; mode == Unified && swap.Limit < 1<<60 {
		usage.SwapLimited, usage.SwapLimit = true, swap.Limit
	}
	if ram.Usage.Limit < 1<<60 { // the kernel reports no limit as a larger value
		usage.MemoryLimit = ram.Usage.Limit
	}
	return usage
}

// Processes implements Kernel.
func (h *Host) Processes(cgroupPath string) ([]int, error) {
	m, err := h.manager(cgroupPath)
	if err != nil {
		return nil, err
	}
	pids, err := m.GetPids()
	if err != nil {
		return nil, fmt.Errorf("listing processes of cgroup %s: %w", cgroupPath, err)
	}
	return pids, nil
}

// Children implements Kernel. It reads all hierarchies, because a crash may have left a cgroup in only some of
// them.
func (h *Host) Children(cgroupPath string) ([]string, error) {
	m, err := h.manager(cgroupPath)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, dir := range m.GetPaths() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading cgroup %s: %w", cgroupPath, err)
		}
		for _, entry := range entries {
			if entry.IsDir() {
				found[h.nameOf(entry.Name())] = true
			}
		}
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	return names, nil
}

// nameOf converts the name of a slice to the last element of its path.
func (h *Host) nameOf(entry string) string {
	slice, ok := strings.CutSuffix(entry, ".slice")
	if h.driver != Systemd || !ok {
		return entry
	}
	return strings.ReplaceAll(slice[strings.LastIndex(slice, "-")+1:], "_", "-")
}

// Mounted returns an error if this machine has no cgroups.
func Mounted() error {
	entries, err := os.ReadDir(mountRoot)
	if err != nil {
		return fmt.Errorf("reading %s: %w", mountRoot, err)
	}
	if len(entries) == 0 {
		return fmt.Errorf("%s is empty: mount the cgroup hierarchies (for example with mount -t cgroup2 none %s)",
			mountRoot, mountRoot)
	}
	return nil
}
