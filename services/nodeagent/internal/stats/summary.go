package stats

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"
)

// Summary tells the figures of the node and of all its Pods. A Pod whose cgroup is not there yet, or no longer, is
// listed without figures.
func (c *Collector) Summary() (*statsapi.Summary, error) {
	r, err := c.read()
	if err != nil {
		return nil, err
	}
	fs, err := fileSystem(c.config.Root, r.hostAt)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	summary := &statsapi.Summary{Node: c.node(r), Pods: []statsapi.PodStats{}}
	summary.Node.Fs = fs
	for i := range r.pods {
		summary.Pods = append(summary.Pods, c.pod(&r.pods[i]))
	}
	c.rates.forget(r.hostAt)
	return summary, nil
}

func (c *Collector) node(r *reading) statsapi.NodeStats {
	stats := statsapi.NodeStats{
		NodeName:  c.config.NodeName,
		StartTime: metav1.NewTime(r.host.boot),
		CPU:       c.rates.cpu("", r.host.cpuNanos, r.hostAt),
		Memory: &statsapi.MemoryStats{
			Time:            metav1.NewTime(r.hostAt),
			AvailableBytes:  ptr.To(r.host.memoryAvailable),
			UsageBytes:      ptr.To(r.host.memoryTotal - r.host.memoryFree),
			WorkingSetBytes: ptr.To(r.host.workingSet()),
		},
	}
	if !r.all.at.IsZero() {
		stats.SystemContainers = []statsapi.ContainerStats{{
			Name: statsapi.SystemContainerPods, CPU: c.cpu("pods", r.all), Memory: memory(r.all)}}
	}
	return stats
}

func (c *Collector) pod(p *podReading) statsapi.PodStats {
	stats := statsapi.PodStats{
		PodRef:     statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID)},
		Containers: []statsapi.ContainerStats{},
	}
	if p.Status.StartTime != nil {
		stats.StartTime = *p.Status.StartTime
	}
	if !p.usage.at.IsZero() {
		stats.CPU, stats.Memory = c.cpu(string(p.UID), p.usage), memory(p.usage)
		stats.ProcessStats = &statsapi.ProcessStats{ProcessCount: ptr.To(p.usage.Pids)}
	}
	for _, container := range p.containers {
		stats.Containers = append(stats.Containers, statsapi.ContainerStats{
			Name: container.name, StartTime: metav1.NewTime(container.startedAt),
			CPU: c.cpu(container.id, container.usage), Memory: memory(container.usage)})
	}
	return stats
}

func (c *Collector) cpu(subject string, s sample) *statsapi.CPUStats {
	return c.rates.cpu(subject, s.CPUNanos, s.at)
}

func memory(s sample) *statsapi.MemoryStats {
	stats := &statsapi.MemoryStats{
		Time:            metav1.NewTime(s.at),
		UsageBytes:      ptr.To(s.Memory),
		WorkingSetBytes: ptr.To(s.WorkingSet),
		RSSBytes:        ptr.To(s.RSS),
		PageFaults:      ptr.To(s.PageFaults),
		MajorPageFaults: ptr.To(s.MajorFaults),
	}
	if s.MemoryLimit > 0 {
		stats.AvailableBytes = ptr.To(s.MemoryLimit - min(s.MemoryLimit, s.WorkingSet))
	}
	return stats
}

func fileSystem(dir string, now time.Time) (*statsapi.FsStats, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return nil, fmt.Errorf("reading the file system of %s: %w", dir, err)
	}
	size := uint64(fs.Bsize)
	return &statsapi.FsStats{
		Time:           metav1.NewTime(now),
		CapacityBytes:  ptr.To(fs.Blocks * size),
		AvailableBytes: ptr.To(fs.Bavail * size),
		UsedBytes:      ptr.To((fs.Blocks - fs.Bfree) * size),
		Inodes:         ptr.To(fs.Files),
		InodesFree:     ptr.To(fs.Ffree),
		InodesUsed:     ptr.To(fs.Files - fs.Ffree),
	}, nil
}
