// Package stats puts the figures of a node together: what the node, its Pods and its containers use.
package stats

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/observed"
)

// Usage reads figures; a cgroup.Tree is one.
type Usage interface {
	NodeUsage() (cgroup.Usage, error)
	PodUsage(pod *corev1.Pod) (cgroup.Usage, error)
	ContainerUsage(pod *corev1.Pod, id string) (cgroup.Usage, error)
}

// Config is what a Collector needs.
type Config struct {
	NodeName string
	// Root is a folder on the file system that Pods use.
	Root  string
	Usage Usage
	// Pods returns the Pods of the node, State what the runtime has of one.
	Pods  func() []*corev1.Pod
	State func(ctx context.Context, podUID string) (observed.Pod, error)
}

// Collector makes summaries. It remembers one reading per subject to compute rates.
type Collector struct {
	config Config

	mu    sync.Mutex // guards earlier
	rates rates
}

// NewCollector makes a Collector.
func NewCollector(config Config) *Collector {
	return &Collector{config: config, rates: rates{earlier: map[string]reading{}}}
}

// Summary reads the figures of the node and of all its Pods. A Pod whose cgroup is not there yet, or no longer, is
// listed without figures.
func (c *Collector) Summary(ctx context.Context) (*statsapi.Summary, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	node, err := c.node(now)
	if err != nil {
		return nil, err
	}
	summary := &statsapi.Summary{Node: node, Pods: []statsapi.PodStats{}}
	for _, pod := range c.config.Pods() {
		summary.Pods = append(summary.Pods, c.pod(ctx, pod, now))
	}
	c.rates.forget(now)
	return summary, nil
}

func (c *Collector) node(now time.Time) (statsapi.NodeStats, error) {
	host, err := readHost("/proc")
	if err != nil {
		return statsapi.NodeStats{}, err
	}
	fs, err := fileSystem(c.config.Root, now)
	if err != nil {
		return statsapi.NodeStats{}, err
	}
	stats := statsapi.NodeStats{
		NodeName:  c.config.NodeName,
		StartTime: metav1.NewTime(host.boot),
		CPU:       c.rates.cpu("", host.cpuNanos, now),
		Memory: &statsapi.MemoryStats{
			Time:            metav1.NewTime(now),
			AvailableBytes:  ptr.To(host.memoryAvailable),
			UsageBytes:      ptr.To(host.memoryTotal - host.memoryFree),
			WorkingSetBytes: ptr.To(host.memoryTotal - host.memoryAvailable),
		},
		Fs: fs,
	}
	if usage, err := c.config.Usage.NodeUsage(); err == nil {
		stats.SystemContainers = []statsapi.ContainerStats{{
			Name: statsapi.SystemContainerPods, CPU: c.rates.cpu("pods", usage.CPUNanos, now),
			Memory: memory(usage, now)}}
	}
	return stats, nil
}

func (c *Collector) pod(ctx context.Context, pod *corev1.Pod, now time.Time) statsapi.PodStats {
	stats := statsapi.PodStats{
		PodRef:     statsapi.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)},
		Containers: []statsapi.ContainerStats{},
	}
	if pod.Status.StartTime != nil {
		stats.StartTime = *pod.Status.StartTime
	}
	if usage, err := c.config.Usage.PodUsage(pod); err == nil {
		stats.CPU, stats.Memory = c.rates.cpu(string(pod.UID), usage.CPUNanos, now), memory(usage, now)
		stats.ProcessStats = &statsapi.ProcessStats{ProcessCount: ptr.To(usage.Pids)}
	}
	state, err := c.config.State(ctx, string(pod.UID))
	if err != nil {
		return stats
	}
	for i := range state.Containers {
		container := &state.Containers[i]
		if container.State != observed.Running {
			continue
		}
		if usage, err := c.config.Usage.ContainerUsage(pod, container.ID); err == nil {
			stats.Containers = append(stats.Containers, statsapi.ContainerStats{
				Name: container.Name, StartTime: metav1.NewTime(container.StartedAt),
				CPU: c.rates.cpu(container.ID, usage.CPUNanos, now), Memory: memory(usage, now)})
		}
	}
	return stats
}

func memory(usage cgroup.Usage, now time.Time) *statsapi.MemoryStats {
	stats := &statsapi.MemoryStats{
		Time:            metav1.NewTime(now),
		UsageBytes:      ptr.To(usage.Memory),
		WorkingSetBytes: ptr.To(usage.WorkingSet),
		RSSBytes:        ptr.To(usage.RSS),
		PageFaults:      ptr.To(usage.PageFaults),
		MajorPageFaults: ptr.To(usage.MajorFaults),
	}
	if usage.MemoryLimit > 0 {
		stats.AvailableBytes = ptr.To(usage.MemoryLimit - min(usage.MemoryLimit, usage.WorkingSet))
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
