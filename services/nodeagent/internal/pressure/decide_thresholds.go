package pressure

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Signal names what a node may run short of, as the kubelet's flags do.
type Signal string

// The signals. AllocatableMemory is how much all Pods together leave of the memory allotted to them; it follows
// from MemoryAvailable and has no flag of its own.
const (
	MemoryAvailable   Signal = "memory.available"
	NodeFsAvailable   Signal = "nodefs.available"
	NodeFsInodesFree  Signal = "nodefs.inodesFree"
	ImageFsAvailable  Signal = "imagefs.available"
	ImageFsInodesFree Signal = "imagefs.inodesFree"
	PIDAvailable      Signal = "pid.available"
	AllocatableMemory Signal = "allocatableMemory.available"
)

// signals are those that a flag may name, in the order in which they are relieved: memory is most urgent.
var signals = []Signal{MemoryAvailable, NodeFsAvailable, ImageFsAvailable, NodeFsInodesFree, ImageFsInodesFree,
	PIDAvailable}

// starved is the resource of a signal, as the API and messages name it.
type starved string

const (
	memory  starved = starved(corev1.ResourceMemory)
	storage starved = starved(corev1.ResourceEphemeralStorage)
	inodes  starved = "inodes"
	pids    starved = "pids"
)

func (s Signal) starves() starved {
	switch s {
	case MemoryAvailable, AllocatableMemory:
		return memory
	case NodeFsInodesFree, ImageFsInodesFree:
		return inodes
	case PIDAvailable:
		return pids
	}
	return storage
}

// condition returns the Node condition that is true below a threshold of the signal.
func (s Signal) condition() corev1.NodeConditionType {
	switch s.starves() {
	case memory:
		return corev1.NodeMemoryPressure
	case pids:
		return corev1.NodePIDPressure
	}
	return corev1.NodeDiskPressure
}

// Amount is a quantity, or a percentage of a capacity.
type Amount struct {
	Quantity resource.Quantity
	// Percent of the capacity applies if it is not 0.
	Percent float64
}

// Of returns the amount for a capacity.
func (a Amount) Of(capacity int64) int64 {
	if a.Percent != 0 {
		return int64(float64(capacity) * a.Percent / 100)
	}
	return a.Quantity.Value()
}

// Threshold is how much of a signal must be left.
type Threshold struct {
	Signal Signal
	Least  Amount
	// Soft thresholds evict Pods only after Grace, and leave them time to stop.
	Soft  bool
	Grace time.Duration
	// Reclaim is how much more than Least must be available before the signal counts as relieved.
	Reclaim Amount
}

// key identifies a threshold: a signal may have a hard and a soft one.
type key struct {
	signal Signal
	soft   bool
}

func (t Threshold) key() key { return key{t.Signal, t.Soft} }

// Level is the level of a signal.
type Level struct {
	// Available is what is left of Capacity: bytes, inodes or process IDs.
	Available, Capacity int64
}

// crossed reports whether less than the threshold is left.
func (t Threshold) crossed(l Level) bool { return l.Available < t.Least.Of(l.Capacity) }

// relieved reports whether enough is left to end the relief of a crossed threshold.
func (t Threshold) relieved(l Level) bool {
	return l.Available >= t.Least.Of(l.Capacity)+t.Reclaim.Of(l.Capacity)
}

// Rules are a node's thresholds and the settings that apply to all of them.
type Rules struct {
	Thresholds []Threshold
	// MaxPodGrace bounds how long a Pod may take to stop for a soft threshold.
	MaxPodGrace time.Duration
	// Transition is how long a condition stays after the last time that a threshold was crossed.
	Transition time.Duration
}

// Headroom returns how much of a machine's memory and storage Pods never get: they are evicted before.
func (r Rules) Headroom(memoryBytes, storageBytes int64) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, t := range r.Thresholds {
		switch {
		case t.Soft:
		case t.Signal == MemoryAvailable:
			out[corev1.ResourceMemory] = *resource.NewQuantity(t.Least.Of(memoryBytes), resource.BinarySI)
		case t.Signal == NodeFsAvailable:
			out[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(t.Least.Of(storageBytes), resource.BinarySI)
		}
	}
	return out
}

// HoldPods adds the thresholds for the memory allotted to all Pods together.
func (r Rules) HoldPods() Rules {
	all := make([]Threshold, 0, len(r.Thresholds)+1)
	for _, t := range r.Thresholds {
		all = append(all, t)
		if t.Signal == MemoryAvailable && !t.Soft {
			t.Signal = AllocatableMemory
			all = append(all, t)
		}
	}
	r.Thresholds = all
	return r
}
