package disruption

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
)

const (
	// confirmation is how long after an eviction its Pod must be seen to be deleted; otherwise the eviction counts as
	// failed.
	confirmation = 2 * time.Minute
	// recheck is when to look at a budget again: not everything that it depends on triggers a pass.
	recheck = time.Minute
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now    time.Time
	Budget *policyv1.PodDisruptionBudget
	// Pods are the Pods that the budget selects.
	Pods []*corev1.Pod
	// Intended is how many Pods their controllers intend together, and IntendedError why that is unknown. They are
	// looked up only if the budget's bound depends on them.
	Intended      int
	IntendedError error
}

// Plan names every effect of one pass.
type Plan struct {
	// Status is what the status must be.
	Status policyv1.PodDisruptionBudgetStatus
	Events []Event
	// Wake is when to decide again even if nothing changes.
	Wake time.Time
}

// Event concerns a Pod, or the budget if Pod is nil.
type Event struct {
	Pod *corev1.Pod
	events.Event
}

// Decide counts how many Pods of a budget may be evicted now.
func Decide(in Input) Plan {
	plan := Plan{Status: *in.Budget.Status.DeepCopy(), Wake: in.Now.Add(recheck)}
	status := &plan.Status
	status.ObservedGeneration = in.Budget.Generation
	if in.IntendedError != nil {
		// The number of Pods needed is unknown: no disruption is allowed.
		status.DisruptionsAllowed = 0
		setCondition(status, metav1.ConditionFalse, policyv1.SyncFailedReason, in.IntendedError.Error(), in.Now)
		plan.Events = append(plan.Events, Event{Event: unknown(in.IntendedError)})
		return plan
	}
	confirm(&in, &plan)
	expected, desired := need(&in.Budget.Spec, len(in.Pods), in.Intended)
	healthy := countHealthy(&in, status.DisruptedPods)
	allowed := max(0, healthy-desired)
	if expected <= 0 {
		allowed = 0
	}
	status.ExpectedPods, status.DesiredHealthy = figure(expected), figure(desired)
	status.CurrentHealthy, status.DisruptionsAllowed = figure(healthy), figure(allowed)
	if allowed > 0 {
		setCondition(status, metav1.ConditionTrue, policyv1.SufficientPodsReason, "", in.Now)
	} else {
		setCondition(status, metav1.ConditionFalse, policyv1.InsufficientPodsReason, "", in.Now)
	}
	return plan
}

// figure clamps a number to what the status can hold: several controllers together may intend more Pods.
func figure(n int) int32 { return int32(min(n, math.MaxInt32)) }

// DependsOnIntended reports whether the bound is a percentage of the intended Pods or is relative to their number.
func DependsOnIntended(spec *policyv1.PodDisruptionBudgetSpec) bool {
	return spec.MaxUnavailable != nil || spec.MinAvailable != nil && spec.MinAvailable.Type == intstr.String
}

// need returns how many Pods are expected and how many of them must be healthy. Without a bound no Pods are
// expected.
func need(spec *policyv1.PodDisruptionBudgetSpec, pods, intended int) (expected, desired int) {
	switch {
	case spec.MaxUnavailable != nil:
		return intended, max(0, intended-scaled(spec.MaxUnavailable, intended))
	case spec.MinAvailable == nil:
		return 0, 0
	case spec.MinAvailable.Type == intstr.String:
		return intended, scaled(spec.MinAvailable, intended)
	}
	return pods, spec.MinAvailable.IntValue()
}

// scaled is the number that a bound is of all, rounded up. A bound that cannot be read is none: the apiserver has
// checked it.
func scaled(bound *intstr.IntOrString, all int) int {
	value, err := intstr.GetScaledValueFromIntOrPercent(bound, all, true)
	if err != nil {
		return 0
	}
	return value
}

// confirm removes the evicted Pods that are being deleted or are gone, and those that stayed.
func confirm(in *Input, plan *Plan) {
	evicted := map[string]metav1.Time{}
	for _, pod := range in.Pods {
		at, found := plan.Status.DisruptedPods[pod.Name]
		if !found || pod.DeletionTimestamp != nil {
			continue
		}
		lapse := at.Add(confirmation)
		if !lapse.After(in.Now) {
			plan.Events = append(plan.Events, Event{pod, notDeleted(in.Budget)})
			continue
		}
		evicted[pod.Name] = at
		if lapse.Before(plan.Wake) {
			plan.Wake = lapse
		}
	}
	if len(evicted) == 0 {
		evicted = nil
	}
	plan.Status.DisruptedPods = evicted
}

func countHealthy(in *Input, evicted map[string]metav1.Time) int {
	healthy := 0
	for _, pod := range in.Pods {
		if _, going := evicted[pod.Name]; !going && pod.DeletionTimestamp == nil && podview.IsReady(pod) {
			healthy++
		}
	}
	return healthy
}

func setCondition(status *policyv1.PodDisruptionBudgetStatus, is metav1.ConditionStatus, reason, message string,
	now time.Time) {
	status.Conditions, _ = conditions.Standard.Set(status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: is, Reason: reason, Message: message,
		ObservedGeneration: status.ObservedGeneration,
	}, now)
}
