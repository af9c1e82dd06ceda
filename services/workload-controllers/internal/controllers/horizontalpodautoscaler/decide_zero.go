package horizontalpodautoscaler

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// A target without replicas is one that somebody has switched off, or one that the autoscaler has taken to zero and
// that is to come back by what an Object or External metric says (KEP-2021). The condition ScaledToZero tells them
// apart, so it is stored before the target is scaled: a controller that dies in between leaves nothing asleep for ever.

// asleep reports whether the status says that the autoscaler has taken the target to zero.
func (in *Input) asleep() bool {
	c := kind.Find(in.Autoscaler.Status.Conditions, autoscalingv2.ScaledToZero)
	return c != nil && c.Status == corev1.ConditionTrue
}

// disabled reports whether somebody else has taken the target to zero: it is left alone then.
func (in *Input) disabled() bool { return in.replicas() == 0 && !in.asleep() }

// toZero takes the last replicas away, once the status that is stored says whose doing it is.
func (d *decision) toZero(statuses []autoscalingv2.MetricStatus) {
	if !d.asleep() {
		d.set(autoscalingv2.ScaledToZero, corev1.ConditionTrue, "ScaledToZero",
			"the HPA controller scaled the workload to zero")
		d.keep(statuses)
		d.plan.Soon = true
		return
	}
	d.rescale(0, "All metrics below target", statuses)
}

// awake says that the target has replicas.
func (d *decision) awake() {
	d.set(autoscalingv2.ScaledToZero, corev1.ConditionFalse, "NotScaledToZero",
		"the HPA controller did not scale the workload to zero")
}
