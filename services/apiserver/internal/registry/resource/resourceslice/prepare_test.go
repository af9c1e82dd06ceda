package resourceslice

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestUnservedFieldsAreDropped(t *testing.T) {
	s := newSlice(func(s *resourcev1.ResourceSliceSpec) {
		s.PartitionTypeAttribute = ptr.To(resourcev1.FullyQualifiedName("a/b"))
		s.SkipNodeOperations = []resourcev1.SkipNodeOperation{"*"}
		d := &s.Devices[0]
		d.NodeAllocatableResources = map[corev1.ResourceName]resourcev1.NodeAllocatableResource{"cpu": {}}
		d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"a": {StringValue: ptr.To("s"),
			IntValues: []int64{1}, BoolValues: []bool{true}, StringValues: []string{"a"}, VersionValues: []string{"1"}}}
		d.ConsumesCounters = consumed(1, 1)
		d.ConsumesCounters[0].CompatibilityGroups = []string{"g"}
	})
	prepare(s, nil, metav1.Now())
	d := s.Spec.Devices[0]
	a := d.Attributes["a"]
	if s.Spec.PartitionTypeAttribute != nil || s.Spec.SkipNodeOperations != nil || d.NodeAllocatableResources != nil ||
		a.IntValues != nil || a.BoolValues != nil || a.StringValues != nil || a.VersionValues != nil ||
		d.ConsumesCounters[0].CompatibilityGroups != nil {
		t.Errorf("keeps %+v", s.Spec)
	}
	if ptr.Deref(a.StringValue, "") != "s" || d.ConsumesCounters[0].CounterSet != "s0" {
		t.Errorf("drops what is served: %+v", s.Spec)
	}
}

// A taint is there since it was first said, not since it was last said.
func TestTimesOfTaints(t *testing.T) {
	tainted := func(taints ...resourcev1.DeviceTaint) *slice {
		return newSlice(func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].Taints = taints })
	}
	first, later := metav1.Unix(100, 5), metav1.Unix(200, 5)
	old := tainted(resourcev1.DeviceTaint{Key: "k", Effect: "NoSchedule"})
	prepare(old, nil, first)
	if at := old.Spec.Devices[0].Taints[0].TimeAdded; at == nil || !at.Equal(ptr.To(metav1.Unix(100, 0))) {
		t.Fatalf("since %v", at)
	}
	own := metav1.NewTime(time.Unix(50, 0))
	now := tainted(resourcev1.DeviceTaint{Key: "k", Effect: "NoSchedule"},
		resourcev1.DeviceTaint{Key: "k", Effect: "NoExecute"}, resourcev1.DeviceTaint{Key: "own", TimeAdded: &own})
	prepare(now, old, later)
	var since []int64
	for _, taint := range now.Spec.Devices[0].Taints {
		since = append(since, taint.TimeAdded.Unix())
	}
	if len(since) != 3 || since[0] != 100 || since[1] != 200 || since[2] != 50 {
		t.Errorf("since %v", since)
	}
}
