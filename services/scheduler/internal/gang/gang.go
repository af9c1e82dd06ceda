// Package gang says which Pods a PodGroup has, and when enough of them are there to be scheduled together.
//
// The package is pure and not safe for concurrent use.
//
//keelson:decision
package gang

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Group is a PodGroup as decisions see it.
type Group struct {
	// Object is the newest version.
	Object *schedulingv1beta1.PodGroup
	// Least is how many Pods have nodes at the same time, or none of them gets one. It is 1 for a group that is no
	// gang.
	Least int
	// Topology is the key of the label of which all nodes of the group have one value; empty when any will do.
	Topology string
	Priority int32
	// Together is set when Pods of the group are evicted together or not at all.
	Together bool
}

// Of returns the group that the object describes.
func Of(o *schedulingv1beta1.PodGroup) Group {
	g := Group{Object: o, Least: 1, Priority: ptr.Deref(o.Spec.Priority, 0),
		Together: o.Spec.DisruptionMode != nil && o.Spec.DisruptionMode.All != nil}
	if gang := o.Spec.SchedulingPolicy.Gang; gang != nil {
		g.Least = int(gang.MinCount)
	}
	if constraints := o.Spec.SchedulingConstraints; constraints != nil && len(constraints.Topology) > 0 {
		g.Topology = constraints.Topology[0].Key
	}
	return g
}

// Same reports whether both lead to the same decision.
func (g Group) Same(o Group) bool {
	g.Object, o.Object = nil, nil
	return g == o
}

// Scheduled reports whether the group says that it was scheduled once. It says so for ever.
func (g Group) Scheduled() bool {
	return meta.IsStatusConditionTrue(g.Object.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
}

// NameOf returns the name of the PodGroup that a Pod is scheduled with; false when it is scheduled alone.
func NameOf(p *corev1.Pod) (types.NamespacedName, bool) {
	if p.Spec.SchedulingGroup == nil || p.Spec.SchedulingGroup.PodGroupName == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: p.Namespace, Name: *p.Spec.SchedulingGroup.PodGroupName}, true
}

// Count is how many Pods a group has.
type Count struct {
	// Placed have a node, Waiting have none, Gated are held by their scheduling gates.
	Placed, Waiting, Gated int
}

// Held says what a group waits for before it is tried at all; empty when it waits for nothing.
func Held(g *Group, name types.NamespacedName, c Count) string {
	switch {
	case g == nil:
		return fmt.Sprintf("waits for pod group %s to be created", name.Name)
	case c.Placed+c.Waiting < g.Least:
		return fmt.Sprintf("waits for pod group %s to have at least %d pods without scheduling gates", name.Name,
			g.Least)
	}
	return ""
}

// Enough reports whether the group may be scheduled when that many of its Pods find a node besides those that have one.
func (g *Group) Enough(c Count, found int) bool { return found > 0 && c.Placed+found >= g.Least }

// TooFew says why a group is not scheduled of which that many Pods find a node.
func (g *Group) TooFew(c Count, found int) string {
	text := fmt.Sprintf("pod group %s needs %d pods to be scheduled together, %d of %d that wait fit at the same time",
		g.Object.Name, g.Least, found, c.Waiting)
	if c.Placed > 0 {
		text += fmt.Sprintf(" and %d have a node", c.Placed)
	}
	return text
}

// Disagree says what keeps Pods from being scheduled together; empty when nothing does.
func (g *Group) Disagree(pods []*corev1.Pod) string {
	for _, p := range pods {
		if p.Spec.SchedulerName != pods[0].Spec.SchedulerName {
			return fmt.Sprintf("pods of pod group %s name different schedulers (%s, %s): "+
				"spec.schedulerName must be one", g.Object.Name, pods[0].Spec.SchedulerName, p.Spec.SchedulerName)
		}
		if priority := ptr.Deref(p.Spec.Priority, 0); priority != g.Priority {
			return fmt.Sprintf("pod %s has priority %d and its pod group %s has %d: both must have the same "+
				"priorityClassName", p.Name, priority, g.Object.Name, g.Priority)
		}
	}
	return ""
}
