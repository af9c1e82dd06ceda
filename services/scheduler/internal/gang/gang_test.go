package gang

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func object(change ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
	o := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
	for _, c := range change {
		c(o)
	}
	return o
}

func least(n int32) func(*schedulingv1beta1.PodGroup) {
	return func(o *schedulingv1beta1.PodGroup) {
		o.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: n}
	}
}

func TestOf(t *testing.T) {
	o := object(least(3), func(o *schedulingv1beta1.PodGroup) {
		o.Spec.Priority = ptr.To[int32](7)
		o.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
		o.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: "rack"}}}
	})
	if got, want := Of(o), (Group{Object: o, Least: 3, Topology: "rack", Priority: 7, Together: true}); got != want {
		t.Errorf("got %+v", got)
	}
	basic := object()
	basic.Spec.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
	if got, want := Of(basic), (Group{Object: basic, Least: 1}); got != want {
		t.Errorf("got %+v", got)
	}
	status := o.DeepCopy()
	status.Status.Conditions = []metav1.Condition{{Type: "PodGroupInitiallyScheduled", Status: "True"}}
	if !Of(o).Same(Of(status)) || Of(o).Same(Of(basic)) || Of(o).Scheduled() || !Of(status).Scheduled() {
		t.Error("a group is told from another by its status, or not by its spec")
	}
}

func TestHeldAndEnough(t *testing.T) {
	g := Of(object(least(3)))
	name := types.NamespacedName{Name: "g"}
	for _, row := range []struct {
		group *Group
		count Count
		want  string
	}{
		{nil, Count{Waiting: 9}, "waits for pod group g to be created"},
		{&g, Count{Waiting: 2, Gated: 9}, "waits for pod group g to have at least 3 pods without scheduling gates"},
		{&g, Count{Waiting: 3}, ""},
		{&g, Count{Waiting: 1, Placed: 2}, ""},
	} {
		if got := Held(row.group, name, row.count); got != row.want {
			t.Errorf("%+v: %q, want %q", row.count, got, row.want)
		}
	}
	for _, row := range []struct {
		placed, found int
		want          bool
	}{{0, 2, false}, {0, 3, true}, {1, 1, false}, {1, 2, true}, {3, 0, false}, {3, 1, true}} {
		if got := g.Enough(Count{Placed: row.placed}, row.found); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
	const want = "pod group g needs 3 pods to be scheduled together, 1 of 2 that wait fit at the same time and 1 " +
		"have a node"
	if got := g.TooFew(Count{Placed: 1, Waiting: 2}, 1); got != want {
		t.Errorf("%q", got)
	}
}

func TestDisagree(t *testing.T) {
	g := Of(object(least(2)))
	pod := func(scheduler string, priority *int32) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: scheduler},
			Spec: corev1.PodSpec{SchedulerName: scheduler,
				Priority: priority}}
	}
	for want, pods := range map[string][]*corev1.Pod{
		"": {pod("a", nil), pod("a", ptr.To[int32](0))},
		"pods of pod group g name different schedulers (a, b): spec.schedulerName must be one": {pod("a", nil),
			pod("b", nil)},
		"pod a has priority 1 and its pod group g has 0: both must have the same priorityClassName": {pod("a", nil),
			pod("a", ptr.To[int32](1))},
	} {
		if got := g.Disagree(pods); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
