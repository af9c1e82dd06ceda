// Package usage knows what nodes, Pods and containers use of CPU and memory: on a request it asks the nodeagents for
// their resource metrics, and makes rates of two readings.
//
// What a nodeagent says is believed of its own node only: a reading is kept by the node that gave it, and a request
// about a Pod reads that of the Pod's node.
package usage

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Reading is what one nodeagent said at one time.
type Reading struct {
	// At is the newest time of its samples, by the clock of the node.
	At   time.Time
	Node Sample
	Pods map[PodName]Containers

	containers int // of all Pods
}

// PodName names a Pod.
type PodName struct{ Namespace, Name string }

// Containers are the samples of a Pod's containers, by name.
type Containers map[string]Sample

// Sample are the figures of a node or of a container.
type Sample struct {
	// At is when they were read; zero if there are none.
	At time.Time
	// CPU is the CPU time in seconds since StartedAt, Memory the working set in bytes.
	CPU    float64
	Memory int64
	// StartedAt is when the container began; zero for a node.
	StartedAt time.Time

	hasCPU, hasMemory bool
}

// Complete reports whether the sample has both figures.
func (s Sample) Complete() bool { return s.hasCPU && s.hasMemory }

// Readings are two of one node, of which rates are made.
type Readings struct{ Earlier, Later *Reading }

// Usage is what a node or a container uses: cores, on average over a window up to At, and bytes.
type Usage struct {
	At     time.Time
	Window time.Duration
	Cores  float64
	Memory int64
}

// Resources is the usage as the API writes it down.
func (u Usage) Resources() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewScaledQuantity(int64(u.Cores*1e9), resource.Nano),
		corev1.ResourceMemory: *resource.NewQuantity(u.Memory, resource.BinarySI),
	}
}
