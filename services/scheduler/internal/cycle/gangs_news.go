package cycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/gang"
)

// reasonScheduled is that of the condition PodGroupInitiallyScheduled of a group that was scheduled.
const reasonScheduled = "Scheduled"

// GroupNews is what the status of a PodGroup should say.
type GroupNews struct {
	// Object is the newest version of the PodGroup, Pod one of its Pods.
	Object     *schedulingv1beta1.PodGroup
	Pod        *corev1.Pod
	Conditions []metav1.Condition
}

// TakeGroupNews returns what PodGroups should say, of those of which that may have changed since the last call. The
// times of the conditions are for the caller to set.
func (c *Cycle) TakeGroupNews() []GroupNews { return c.gangs.takeNews() }

// RecheckGroup has TakeGroupNews look at a PodGroup again.
func (c *Cycle) RecheckGroup(name types.NamespacedName) { c.gangs.recheck(name) }

// takeNews returns what PodGroups should say, of those of which that may have changed since the last call.
func (gs *gangs) takeNews() (news []GroupNews) {
	for g := range gs.unreported {
		delete(gs.unreported, g)
		pod := g.anyPod()
		if g.group == nil || pod == nil || !gs.leading[SchedulerName(pod)] {
			continue
		}
		if conditions := g.conditions(); len(conditions) > 0 {
			news = append(news, GroupNews{Object: g.group.Object, Pod: pod, Conditions: conditions})
		}
	}
	return news
}

// recheck has takeNews look at a PodGroup again.
func (gs *gangs) recheck(name types.NamespacedName) {
	if g := gs.byName[name]; g != nil {
		gs.unreported[g] = true
	}
}

func (g *gangState) anyPod() *corev1.Pod {
	for _, p := range g.placed {
		return p
	}
	for _, p := range g.waiting {
		return p.object
	}
	return g.evicted
}

// conditions are those that the group has now. That it was scheduled once is never taken back.
func (g *gangState) conditions() (list []metav1.Condition) {
	say := func(kind string, status metav1.ConditionStatus, reason, message string) {
		list = append(list, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: g.group.Object.Generation})
	}
	switch initially := schedulingv1beta1.PodGroupInitiallyScheduled; {
	case g.group.Scheduled():
	case len(g.placed) >= g.group.Least:
		say(initially, metav1.ConditionTrue, reasonScheduled,
			fmt.Sprintf("at least %d pods have a node", g.group.Least))
	case g.refused != "":
		say(initially, metav1.ConditionFalse, schedulingv1beta1.PodGroupReasonUnschedulable, g.refused)
	}
	if g.evicted != nil {
		say(schedulingv1beta1.DisruptionTarget, metav1.ConditionTrue,
			schedulingv1beta1.PodGroupReasonPreemptionByScheduler, "its pods make room for pods of higher priority")
	}
	return list
}

// held says of a Pod that was not tried yet what its group waits for.
func (gs *gangs) held(p *pod) (*corev1.Pod, corev1.PodCondition, bool) {
	if p.gang == nil || p.phase == gated || p.last != nil {
		return nil, corev1.PodCondition{}, false
	}
	held := gang.Held(p.gang.group, p.gang.name, p.gang.count())
	if held == "" {
		return nil, corev1.PodCondition{}, false
	}
	v := Verdict{Pod: p.object, Group: held}
	return p.object, v.Condition(), true
}
