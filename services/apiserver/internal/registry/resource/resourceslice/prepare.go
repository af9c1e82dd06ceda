package resourceslice

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// prepare leaves out what features that are off would bring, and says since when there are taints of which the driver
// does not say it. old is nil for a new slice.
func prepare(s, old *slice, now metav1.Time) {
	s.Spec.PartitionTypeAttribute, s.Spec.SkipNodeOperations = nil, nil
	since := map[taintID]*metav1.Time{}
	if old != nil {
		since = timesOf(old)
	}
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		d.NodeAllocatableResources = nil
		for name, attribute := range d.Attributes {
			attribute.IntValues, attribute.BoolValues = nil, nil
			attribute.StringValues, attribute.VersionValues = nil, nil
			d.Attributes[name] = attribute
		}
		for j := range d.ConsumesCounters {
			d.ConsumesCounters[j].CompatibilityGroups = nil
		}
		for j := range d.Taints {
			stamp(&d.Taints[j], since[idOf(d, &d.Taints[j])], now)
		}
	}
}

// stamp gives the taint the time since when it is there: that of the same taint before, or now.
func stamp(taint *resourcev1.DeviceTaint, before *metav1.Time, now metav1.Time) {
	switch {
	case taint.TimeAdded != nil:
	case before != nil:
		taint.TimeAdded = before.DeepCopy()
	default:
		taint.TimeAdded = ptr.To(now.Rfc3339Copy())
	}
}

// taintID is what a taint is besides its time.
type taintID struct {
	device, key, value string
	effect             resourcev1.DeviceTaintEffect
}

func idOf(d *resourcev1.Device, taint *resourcev1.DeviceTaint) taintID {
	return taintID{d.Name, taint.Key, taint.Value, taint.Effect}
}

func timesOf(s *slice) map[taintID]*metav1.Time {
	times := map[taintID]*metav1.Time{}
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		for j := range d.Taints {
			times[idOf(d, &d.Taints[j])] = d.Taints[j].TimeAdded
		}
	}
	return times
}
