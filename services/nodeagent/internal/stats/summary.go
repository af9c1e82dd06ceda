package stats

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/diskusage"
)

// Summary returns the figures of the node and of all its Pods, or only their CPU and memory. A Pod without a
// cgroup, before or after its life, is listed without figures.
func (c *Collector) Summary(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error) {
	r, err := c.read()
	if err != nil {
		return nil, err
	}
	if onlyCPUAndMemory {
		return summarize(c.config.NodeName, r), nil
	}
	space, err := diskusage.SpaceOf(c.config.Root)
	if err != nil {
		return nil, err
	}
	summary := summarize(c.config.NodeName, r)
	more := rest{networks: c.networksOf(r), maxPIDs: c.config.MaxPIDs, space: space, disk: c.config.Disk(ctx),
		drivers: c.config.Drivers(ctx)}
	if running, err := HostProcesses(c.config.Proc); err == nil {
		more.processes = &running
	}
	more.complete(summary, r)
	return summary, nil
}

// summarize converts a reading: CPU and memory.
func summarize(nodeName string, r *reading) *statsapi.Summary {
	at := metav1.NewTime(r.hostAt)
	summary := &statsapi.Summary{Node: statsapi.NodeStats{
		NodeName:  nodeName,
		StartTime: metav1.NewTime(r.host.boot),
		CPU: &statsapi.CPUStats{Time: at, UsageCoreNanoSeconds: ptr.To(r.host.cpuNanos),
			UsageNanoCores: r.cores, PSI: psi(r.host.stalls.CPU)},
		Memory: &statsapi.MemoryStats{
			Time:            at,
			AvailableBytes:  ptr.To(r.host.memoryAvailable),
			UsageBytes:      ptr.To(r.host.memoryTotal - r.host.memoryFree),
			WorkingSetBytes: ptr.To(r.host.workingSet()),
			PSI:             psi(r.host.stalls.Memory),
		},
	}, Pods: make([]statsapi.PodStats, 0, len(r.pods))}
	if !r.all.at.IsZero() {
		summary.Node.SystemContainers = []statsapi.ContainerStats{{
			Name: statsapi.SystemContainerPods, CPU: r.all.cpu(), Memory: r.all.memory()}}
	}
	for i := range r.pods {
		summary.Pods = append(summary.Pods, r.pods[i].summary())
	}
	return summary
}

func (p *podReading) summary() statsapi.PodStats {
	stats := statsapi.PodStats{
		PodRef:     statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID)},
		CPU:        p.usage.cpu(),
		Memory:     p.usage.memory(),
		Swap:       p.usage.swap(),
		Containers: make([]statsapi.ContainerStats, 0, len(p.containers)),
	}
	if p.Status.StartTime != nil {
		stats.StartTime = *p.Status.StartTime
	}
	for _, container := range p.containers {
		stats.Containers = append(stats.Containers, statsapi.ContainerStats{
			Name: container.name, StartTime: metav1.NewTime(container.startedAt),
			CPU: container.usage.cpu(), Memory: container.usage.memory(), Swap: container.usage.swap()})
	}
	return stats
}

// cpu returns nil without a cgroup, or if the kernel does not count: a running container has used some time.
func (s sample) cpu() *statsapi.CPUStats {
	if s.at.IsZero() || s.CPUNanos == 0 {
		return nil
	}
	return &statsapi.CPUStats{Time: metav1.NewTime(s.at), UsageCoreNanoSeconds: &s.CPUNanos, UsageNanoCores: s.cores,
		PSI: psi(s.Stalls.CPU)}
}

// memory returns nil without a cgroup, or if the kernel does not count: a running container has some memory.
func (s sample) memory() *statsapi.MemoryStats {
	if s.at.IsZero() || s.Memory == 0 {
		return nil
	}
	stats := &statsapi.MemoryStats{
		Time:            metav1.NewTime(s.at),
		UsageBytes:      &s.Memory,
		WorkingSetBytes: &s.WorkingSet,
		RSSBytes:        &s.RSS,
		PageFaults:      &s.PageFaults,
		MajorPageFaults: &s.MajorFaults,
		PSI:             psi(s.Stalls.Memory),
	}
	if s.MemoryLimit > 0 {
		stats.AvailableBytes = ptr.To(s.MemoryLimit - min(s.MemoryLimit, s.WorkingSet))
	}
	return stats
}

// swap returns nil without a cgroup, or if the kernel does not count.
func (s sample) swap() *statsapi.SwapStats {
	if s.memory() == nil {
		return nil
	}
	stats := &statsapi.SwapStats{Time: metav1.NewTime(s.at), SwapUsageBytes: &s.Swap}
	if s.SwapLimited {
		stats.SwapAvailableBytes = ptr.To(s.SwapLimit - min(s.SwapLimit, s.Swap))
	}
	return stats
}

// io returns nil if the kernel does not report for how long processes have waited for disks.
func io(at time.Time, waited *cgroup.Stall) *statsapi.IOStats {
	if waited == nil {
		return nil
	}
	return &statsapi.IOStats{Time: metav1.NewTime(at), PSI: psi(waited)}
}

// psi reports the sum in the kernel's microseconds, as the kubelet does.
func psi(waited *cgroup.Stall) *statsapi.PSIStats {
	if waited == nil {
		return nil
	}
	data := func(w cgroup.Waits) statsapi.PSIData {
		return statsapi.PSIData{Total: w.Total, Avg10: w.Avg10, Avg60: w.Avg60, Avg300: w.Avg300}
	}
	return &statsapi.PSIStats{Full: data(waited.Full), Some: data(waited.Some)}
}
