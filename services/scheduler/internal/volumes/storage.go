package volumes

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/scheduler/internal/columns"
)

// SetDriver notes a CSIDriver that is new or changed.
func (b *Book) SetDriver(d *storagev1.CSIDriver) {
	b.drivers[d.Name] = true
	b.setDriver(d.Name, ptr.Deref(d.Spec.StorageCapacity, false),
		ptr.Deref(d.Spec.PreventPodSchedulingIfMissing, false))
}

// RemoveDriver notes that a CSIDriver is gone.
func (b *Book) RemoveDriver(name string) {
	delete(b.drivers, name)
	b.setDriver(name, false, false)
}

// setDriver notes whether a driver is to be asked for volumes only where it said that it has the storage, and whether
// Pods with volumes of it go only where it is.
func (b *Book) setDriver(driver string, tracked, required bool) {
	if change(b.tracked, driver, tracked) {
		for name, class := range b.classes {
			if class.provisioner == driver {
				b.touchClass(name)
			}
		}
	}
	if change(b.required, driver, required) {
		for uid, known := range b.pods {
			if slices.ContainsFunc(known.volumes, func(v columns.Volume) bool { return v.Driver == driver }) {
				b.stale[uid] = true
			}
		}
	}
}

// change puts a name into a set or takes it out, and reports whether it was not so before.
func change(set map[string]bool, name string, in bool) bool {
	if set[name] == in {
		return false
	}
	if set[name] = in; !in {
		delete(set, name)
	}
	return true
}

// SegmentOf returns the segment of a CSIStorageCapacity; nil when that names no storage or no node.
func SegmentOf(c *storagev1.CSIStorageCapacity) *columns.Segment {
	nodes, err := metav1.LabelSelectorAsSelector(c.NodeTopology)
	if err != nil || c.NodeTopology == nil {
		return nil
	}
	s := &columns.Segment{Class: c.StorageClassName, Nodes: nodes}
	if c.Capacity != nil {
		s.Capacity = c.Capacity.Value()
	}
	switch {
	case c.MaximumVolumeSize != nil:
		s.Largest = c.MaximumVolumeSize.Value()
	case c.Capacity != nil:
		s.Largest = s.Capacity
	default:
		return nil
	}
	return s
}
