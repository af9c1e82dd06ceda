// Package stats reads what a node, its Pods and their containers use, and tells it in two forms: as the Summary of the
// field, with rates, and as resource metrics, which leave the rates to whoever reads them twice.
package stats

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

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
	// Pods returns the Pods of the node.
	Pods func() []Pod
}

// Pod is a Pod with its running containers, of which the newest instance comes first.
type Pod struct {
	*corev1.Pod
	// Removed Pods are being ended; the API may have another one of that name.
	Removed bool
	Running []observed.Container
}

// Collector tells the figures. It remembers one reading per subject to compute the rates of the Summary.
type Collector struct {
	config Config

	mu    sync.Mutex // guards rates
	rates rates
}

// NewCollector makes a Collector.
func NewCollector(config Config) *Collector {
	return &Collector{config: config, rates: rates{earlier: map[string]earlier{}}}
}
