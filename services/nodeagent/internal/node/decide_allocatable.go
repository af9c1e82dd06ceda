package node

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/services/nodeagent/internal/reserved"
)

// Allocatable returns what Pods may request: the capacity without what is reserved and without the headroom below
// which Pods are evicted. Memory in huge pages cannot be used for anything else.
func (f Facts) Allocatable() corev1.ResourceList {
	out := less(less(f.capacity(), f.Reserved), f.Headroom)
	for _, all := range f.HugePages {
		out = less(out, corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(all, resource.BinarySI)})
	}
	return out
}

// PodLimits returns what all Pods together may use, including a limit of processes if some are reserved. What is
// allocatable is less by the headroom, so that eviction comes before the kernel's limit.
func (f Facts) PodLimits(held bool) corev1.ResourceList {
	if !held {
		return f.capacity()
	}
	limits := less(f.capacity(), f.Reserved)
	if kept := f.Reserved[reserved.PIDs]; !kept.IsZero() {
		limits[reserved.PIDs] = *resource.NewQuantity(max(f.MaxPIDs-kept.Value(), 1), resource.DecimalSI)
	}
	return limits
}

// CheckReserved returns an error if so much of a resource is reserved that nothing is left for Pods.
func (f Facts) CheckReserved() error {
	has := f.capacity()
	has[reserved.PIDs] = *resource.NewQuantity(f.MaxPIDs, resource.DecimalSI)
	for _, name := range slices.Sorted(maps.Keys(f.Reserved)) {
		kept, all := f.Reserved[name], has[name]
		if kept.Sign() > 0 && kept.Cmp(all) >= 0 {
			return fmt.Errorf("--system-reserved and --kube-reserved: %s of %s is reserved, which leaves Pods nothing "+
				"of %s", kept.String(), name, all.String())
		}
	}
	return nil
}

// less subtracts the amounts of the same resources in another list, down to zero.
func less(list, away corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(list)
	for name, quantity := range out {
		if part, ok := away[name]; ok {
			quantity = quantity.DeepCopy()
			if quantity.Sub(part); quantity.Sign() < 0 {
				quantity = *resource.NewQuantity(0, quantity.Format)
			}
			out[name] = quantity
		}
	}
	return out
}
