package disruption

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/podview"
)

// accountOfPod explains when a Pod's DisruptionTarget will be reset.
func accountOfPod(pod *corev1.Pod, at, now time.Time) explain.Account {
	var a explain.Account
	if !at.After(now) {
		a.Do(1, "takes back its %s, which nothing came of", corev1.DisruptionTarget)
		return a
	}
	target := podview.Condition(pod, corev1.DisruptionTarget)
	a.Wait(explain.Wait{Since: target.LastTransitionTime.Time, Reason: target.Reason,
		For:  "the deletion that its " + string(corev1.DisruptionTarget) + " announces",
		Ends: "it is being deleted, or it is " + explain.At(at) + " and that is taken back"})
	return a
}

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	var a explain.Account
	s := &plan.Status
	a.Settled = fmt.Sprintf("it allows %s: %d Pods are healthy, %d must be", explain.Count(int(s.DisruptionsAllowed),
		"disruption"), s.CurrentHealthy, s.DesiredHealthy)
	condition := conditions.Standard.Find(s.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case condition == nil:
	case in.IntendedError != nil:
		a.Wait(explain.Wait{Since: condition.LastTransitionTime.Time, Reason: condition.Reason,
			For:  "how many Pods are intended: " + condition.Message,
			Ends: "that is put right; until then nothing is allowed"})
	case s.DisruptionsAllowed == 0:
		a.Wait(explain.Wait{Since: condition.LastTransitionTime.Time, Reason: condition.Reason, For: fmt.Sprintf(
			"more healthy Pods: %d of %d are, and %d must be", s.CurrentHealthy, s.ExpectedPods, s.DesiredHealthy),
			Ends: fmt.Sprintf("more than %d are ready", s.DesiredHealthy)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.DisruptedPods)) {
		at := s.DisruptedPods[name]
		a.Wait(explain.Wait{Since: at.Time, Reason: "Evicted", For: "the evicted Pod " + name + " to go",
			Ends: "it is being deleted, or it is " + explain.At(at.Add(confirmation))})
	}
	return a
}
