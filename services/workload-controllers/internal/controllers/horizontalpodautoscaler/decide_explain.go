package horizontalpodautoscaler

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/explain"
)

// account explains a decision, by the conditions that it sets.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Settled: fmt.Sprintf("the target has %s, as its metrics ask; they are read again every %s",
		explain.Count(int(plan.Status.DesiredReplicas), "replica"), in.Settings.SyncPeriod)}
	if r := plan.Rescale; r != nil {
		a.Do(1, "scales the target from %d to %d: %s", r.From, r.To, r.Reason)
	}
	list := plan.Status.Conditions
	wait := func(kindOf autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, what,
		ends string, reasons ...string) {
		c := kind.Find(list, kindOf)
		if c == nil || c.Status != status || len(reasons) > 0 && c.Reason != reasons[0] && c.Reason != reasons[1] {
			return
		}
		a.Wait(explain.Wait{Since: c.LastTransitionTime.Time, Reason: c.Reason, For: what + ": " + c.Message,
			Ends: ends})
	}
	wait(autoscalingv2.AbleToScale, corev1.ConditionFalse, "the target's scale",
		"the scale that spec.scaleTargetRef names can be read and written")
	if in.Target.Err != nil {
		return a // The other conditions are from an earlier pass.
	}
	if in.disabled() {
		wait(autoscalingv2.ScalingActive, corev1.ConditionFalse, "the target to be in use",
			"somebody gives the target at least one replica")
		return a
	}
	wait(autoscalingv2.ScalingActive, corev1.ConditionFalse, "metrics to go by",
		"the metrics that spec.metrics names can be read for the target's Pods")
	wait(autoscalingv2.AbleToScale, corev1.ConditionTrue, "the load to stay as it is",
		"the stabilization window of spec.behavior is over", "ScaleUpStabilized", "ScaleDownStabilized")
	wait(autoscalingv2.ScalingLimited, corev1.ConditionTrue, "leave to go further",
		"the load asks for less, or minReplicas, maxReplicas or the policies of spec.behavior allow more")
	return a
}
