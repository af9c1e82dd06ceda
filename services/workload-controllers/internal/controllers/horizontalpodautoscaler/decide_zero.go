package horizontalpodautoscaler

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// A target without replicas was either switched off by a user, or scaled to zero by the autoscaler, which scales it
// up again when an Object or External metric asks for it (KEP-2021). The condition ScaledToZero distinguishes them,
// so it is stored before the target is scaled: if the controller dies in between, no target stays at zero for ever.

// asleep reports whether the status says that the autoscaler has scaled the target to zero.
func (in *Input) asleep() bool {
	c := kind.Find(in.Autoscaler.Status.Conditions, autoscalingv2.ScaledToZero)
	return c != nil && c.Status == corev1.ConditionTrue
}

// disabled reports whether another client has scaled the target to zero: the autoscaler then leaves it alone.
func (in *Input) disabled() bool { return in.replicas() == 0 && !in.asleep() }

// toZero removes the last replicas, once the stored status says that the autoscaler does so.
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
