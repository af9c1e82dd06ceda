// Package stats reads what a node, its Pods and their containers use, and reports it in two forms: as the kubelet's
// Summary, with rates, and as resource metrics, whose readers compute rates from two scrapes. Unknown figures are
// left out of both, never reported as 0.
package stats

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/volumestats"
)

// Usage reads figures; cgroup.Tree implements it.
type Usage interface {
	NodeUsage() (cgroup.Usage, error)
	PodUsage(pod *corev1.Pod) (cgroup.Usage, error)
	ContainerUsage(pod *corev1.Pod, id string) (cgroup.Usage, error)
	ContainerTransfers(pod *corev1.Pod, id string) ([]cgroup.Transfer, error)
	// Path returns where the kernel has the cgroup of a container or a sandbox; without an ID that of the Pod, without
	// a Pod that of all Pods.
	Path(pod *corev1.Pod, id string) string
	// Processes returns the processes of a container or a sandbox.
	Processes(pod *corev1.Pod, id string) ([]int, error)
}

// Config is what a Collector needs.
type Config struct {
	NodeName string
	// Proc and Sys are the file systems of these names; Root is a folder on the file system that Pods use.
	Proc, Sys, Root string
	// Machine identifies the machine, MilliCPU is its number of CPUs in thousandths.
	Machine  corev1.NodeSystemInfo
	MilliCPU int64
	// MaxPIDs is the maximum number of processes and threads.
	MaxPIDs int64
	Usage   Usage
	// OwnCPUs reports whether a container has CPUs of its own: then it has no quota; nil: none has.
	OwnCPUs func(uid types.UID, container string) bool
	// Pods returns the Pods of the node.
	Pods func() []Pod
	// Disk returns the result of the last survey of the disk; nil if there was none. DiskKnown is a Disk that returns
	// at once, even before the first survey.
	Disk      func(context.Context) *diskusage.Found
	DiskKnown func() *diskusage.Found
	// Drivers returns what CSI drivers say about volumes; it never waits longer than a moment.
	Drivers func(context.Context) volumestats.Answers
}

// Pod is a Pod with its running containers, the newest instance first.
type Pod struct {
	*corev1.Pod
	// Removed Pods are being ended; the API may have another one of the same name.
	Removed bool
	Running []observed.Container
}

// Collector reports the figures. It remembers the last reading, which is reused for a moment, an earlier reading of
// each subject for the rates, and the reported totals.
type Collector struct {
	config Config

	mu     sync.Mutex // guards all fields below
	rates  rates
	totals totals
	last   *reading
	// networks are those of the last reading; nil if they were not requested.
	networks *networks
}

// NewCollector returns a Collector.
func NewCollector(config Config) *Collector {
	return &Collector{config: config, rates: rates{earlier: map[string]earlier{}}, totals: totals{}}
}
