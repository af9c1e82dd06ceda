// Package stats reads what a node, its Pods and their containers use, and tells it in two forms: as the Summary of the
// field, with rates, and as resource metrics, which leave the rates to whoever reads them twice. What cannot be told is
// left out of both, never told as 0.
package stats

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/observed"
)

// Usage reads figures; a cgroup.Tree is one.
type Usage interface {
	NodeUsage() (cgroup.Usage, error)
	PodUsage(pod *corev1.Pod) (cgroup.Usage, error)
	ContainerUsage(pod *corev1.Pod, id string) (cgroup.Usage, error)
	ContainerTransfers(pod *corev1.Pod, id string) ([]cgroup.Transfer, error)
	// Path returns where the kernel has the cgroup of a container or a sandbox; without an ID that of the Pod, without
	// a Pod that of all.
	Path(pod *corev1.Pod, id string) string
	// Processes returns those of a container or a sandbox.
	Processes(pod *corev1.Pod, id string) ([]int, error)
}

// Config is what a Collector needs.
type Config struct {
	NodeName string
	// Proc and Sys are the file systems of these names, Root is a folder on the file system that Pods use.
	Proc, Sys, Root string
	// Machine says which one this is, MilliCPU how much of processors it has, in thousandths.
	Machine  corev1.NodeSystemInfo
	MilliCPU int64
	// MaxPIDs is how many processes and threads there may be.
	MaxPIDs int64
	Usage   Usage
	// OwnCPUs says of a container that it has processors for itself: then it has no quota; nil: none has.
	OwnCPUs func(uid types.UID, container string) bool
	// Pods returns the Pods of the node.
	Pods func() []Pod
	// Disk returns what was found of the disk when it was looked at last; nil if it never was.
	// DiskKnown is Disk that returns at once, also before it was looked at first.
	Disk      func(context.Context) *diskusage.Found
	DiskKnown func() *diskusage.Found
}

// Pod is a Pod with its running containers, of which the newest instance comes first.
type Pod struct {
	*corev1.Pod
	// Removed Pods are being ended; the API may have another one of that name.
	Removed bool
	Running []observed.Container
}

// Collector tells the figures. It remembers the last reading, which stands for a moment, and of each subject an earlier
// one, for the rates, and the totals told.
type Collector struct {
	config Config

	mu     sync.Mutex // guards all below
	rates  rates
	totals totals
	last   *reading
	// networks are those of the last reading; nil if nobody has asked for them.
	networks *networks
}

// NewCollector makes a Collector.
func NewCollector(config Config) *Collector {
	return &Collector{config: config, rates: rates{earlier: map[string]earlier{}}, totals: totals{}}
}
