package horizontalpodautoscaler

import (
	"errors"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// queue is an external metric of which one replica handles ten.
func queue(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: "External", External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "queue"}, Target: target}}
}

// queued returns an autoscaler of 0 to 10 replicas by the length of a queue, and a target with that many replicas.
func queued(replicas int, length float64, target autoscalingv2.MetricTarget) Input {
	in := input(each(replicas, 0)...)
	in.Autoscaler.Spec.MinReplicas = ptr.To[int32](0)
	in.Autoscaler.Spec.Metrics = []autoscalingv2.MetricSpec{queue(target)}
	in.Readings = []Reading{{Value: length * 1000}}
	return in
}

func taken(in Input) Input {
	in.Autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: autoscalingv2.ScaledToZero, Status: corev1.ConditionTrue}}
	return in
}

// A target that the autoscaler has scaled to zero comes back, one that another client has scaled to zero stays
// (KEP-2021).
func TestZero(t *testing.T) {
	perReplica := autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: amount("10")}
	whole := autoscalingv2.MetricTarget{Type: "Value", Value: amount("10")}
	const scaled, not = "True ScaledToZero the HPA controller scaled the workload to zero",
		"False NotScaledToZero the HPA controller did not scale the workload to zero"
	unready := func(in Input) Input {
		in.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
		return in
	}
	behaving := func(in Input, policy autoscalingv2.HPAScalingPolicy) Input {
		in.Autoscaler.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp: &autoscalingv2.HPAScalingRules{Policies: []autoscalingv2.HPAScalingPolicy{policy}}}
		return in
	}
	percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
	atLeast := func(in Input, least int32) Input { *in.Autoscaler.Spec.MinReplicas = least; return in }
	silent := func(in Input) Input { in.Readings[0].Err = errors.New("away"); return in }
	withCPU := func(in Input) Input {
		in.Autoscaler.Spec.Metrics = append(in.Autoscaler.Spec.Metrics, cpu(50))
		in.Readings = append(in.Readings, Reading{})
		return in
	}
	for _, row := range []struct {
		name      string
		in        Input
		want      int32
		soon      bool
		condition string
	}{
		{"an empty queue: the status says so first", queued(2, 0, perReplica), 2, true, scaled},
		{"an empty queue: then the target is scaled", taken(queued(2, 0, perReplica)), 0, false, ""},
		{"an empty queue, as a whole", taken(queued(2, 0, whole)), 0, false, ""},
		{"one in the queue", queued(2, 1, perReplica), 1, false, not},
		{"one in the queue, as a whole", queued(1, 1, whole), 1, false, not},
		{"one in the queue, and one replica that starts", unready(queued(1, 1, whole)), 1, false, not},
		{"a queue that filled after the status said so", taken(queued(2, 20, perReplica)), 2, false, not},
		{"at least one", atLeast(queued(2, 0, perReplica), 1), 1, false, not},
		{"still empty", taken(queued(0, 0, perReplica)), 0, false, ""},
		{"one in the queue wakes it", taken(queued(0, 1, perReplica)), 1, false, ""},
		{"one in the queue as a whole wakes it", taken(queued(0, 1, whole)), 1, false, ""},
		{"within what is tolerated", taken(queued(0, 10, whole)), 1, false, ""},
		{"many in the queue", taken(queued(0, 35, perReplica)), 4, false, ""},
		{"by rules in percent", behaving(taken(queued(0, 35, perReplica)), percent), 1, false, ""},
		{"somebody else's zero", queued(0, 35, perReplica), 0, false, ""},
		{"another least since", atLeast(taken(queued(0, 0, perReplica)), 2), 2, false, ""},
		{"nobody tells of the queue", silent(taken(queued(0, 35, perReplica))), 0, false, ""},
		{"nobody tells of the queue meanwhile", silent(taken(queued(2, 0, perReplica))), 2, false, not},
		{"Pods that are not there hold nothing back", withCPU(taken(queued(0, 35, perReplica))), 4, false, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.in.Readings = append([]Reading{}, row.in.Readings...)
			plan := Decide(row.in)
			condition := said(plan.Status, autoscalingv2.ScaledToZero)
			if row.condition == "" {
				row.condition = condition
			}
			if got := desired(row.in, plan); got != row.want || plan.Soon != row.soon || condition != row.condition {
				t.Errorf("%d replicas, soon %v, %q", got, plan.Soon, condition)
			}
			if off := row.in.disabled(); off != (row.name == "somebody else's zero") {
				t.Errorf("disabled: %v", off)
			}
		})
	}
}

// TestZeroThroughItsLife goes from two replicas to none, after the window in which the queue was longer, and back.
func TestZeroThroughItsLife(t *testing.T) {
	perReplica := autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: amount("10")}
	replicas, status, history := 2, autoscalingv2.HorizontalPodAutoscalerStatus{}, History{}
	pass := func(at time.Duration, length float64) Plan {
		in := queued(replicas, length, perReplica)
		in.Settings.DownscaleStabilization = 5 * time.Minute
		in.Now, in.Autoscaler.Status, in.History = now.Add(at), status, history
		plan := Decide(in)
		if plan.Rescale != nil {
			plan = Settle(in, plan, nil)
			replicas = int(plan.Rescale.To)
		}
		status, history = plan.Status, plan.History
		return plan
	}
	for _, row := range []struct {
		at     time.Duration
		length float64
		want   int
		soon   bool
		asleep corev1.ConditionStatus
	}{
		{0, 20, 2, false, corev1.ConditionFalse},
		{time.Minute, 0, 2, false, corev1.ConditionFalse},
		{5 * time.Minute, 0, 2, true, corev1.ConditionTrue},
		{5*time.Minute + time.Second, 0, 0, false, corev1.ConditionTrue},
		{6 * time.Minute, 0, 0, false, corev1.ConditionTrue},
		{7 * time.Minute, 11, 2, false, corev1.ConditionFalse},
		{8 * time.Minute, 11, 2, false, corev1.ConditionFalse},
	} {
		plan := pass(row.at, row.length)
		if c := kind.Find(status.Conditions, autoscalingv2.ScaledToZero); replicas != row.want ||
			plan.Soon != row.soon || c == nil || c.Status != row.asleep {
			t.Errorf("after %v: %d replicas, soon %v, %+v", row.at, replicas, plan.Soon, c)
		}
	}
}
