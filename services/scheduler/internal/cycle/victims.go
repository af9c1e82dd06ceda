package cycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
)

// victims are the Pods that are evicted to make room for others, and what keeps Pods from being evicted, or from being
// evicted alone.
type victims struct {
	state   *columns.State
	budgets *preempt.Budgets
	units   *preempt.Units
	going   map[types.UID]bool // those that the API does not show to be leaving yet
}

func newVictims(state *columns.State) *victims {
	return &victims{state: state, budgets: preempt.NewBudgets(), units: preempt.NewUnits(),
		going: map[types.UID]bool{}}
}

// choose notes that a Pod is about to be evicted.
func (v *victims) choose(victim *corev1.Pod) {
	v.going[victim.UID] = true
	v.budgets.Disrupt(victim)
	v.units.Touch(victim.UID)
	v.state.Note(victim.UID, false)
}

// spare notes that a Pod is not evicted after all, or that the API shows it to leave.
func (v *victims) spare(uid types.UID) {
	v.forget(uid)
	v.state.Note(uid, false)
}

// forget notes that a Pod is gone.
func (v *victims) forget(uid types.UID) {
	delete(v.going, uid)
	v.budgets.Seen(uid)
	v.units.Touch(uid)
}

// leave reports whether a Pod goes to make room for another.
func (v *victims) leave(p *corev1.Pod) bool { return v.going[p.UID] || preempted(p) }

// preempted reports whether the API shows that the Pod leaves to make room for another.
func preempted(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
			c.Reason == corev1.PodReasonPreemptionByScheduler
	})
}
