package horizontalpodautoscaler

import (
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/events"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now        time.Time
	Settings   Settings
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler
	Target     Target
	// Pods are the Pods that the target's selector matches, in a stable order.
	Pods []*corev1.Pod
	// Rivals are all autoscalers that select one of the Pods, including this one; nil if it is the only one.
	Rivals []string
	// Readings are the readings of the metrics in the spec, one each. None is read if NeedsMetrics is false.
	Readings []Reading
	History  History
}

// Target is the scaled object.
type Target struct {
	// Err is why the target was not found; the other fields are then empty.
	Err error
	// Scale is the scale of Resource.
	Scale    *autoscalingv1.Scale
	Resource schema.GroupResource
	// Selector selects its Pods; SelectorErr is why it is unknown.
	Selector    labels.Selector
	SelectorErr error
}

// Plan names every effect of one pass.
type Plan struct {
	// Status is what the status must be.
	Status  autoscalingv2.HorizontalPodAutoscalerStatus
	Rescale *Rescale
	Events  []events.Event
	History History
	// Soon says to write the status in this pass, and to scale the target in the next.
	Soon bool
}

// Rescale is a change of the number of replicas.
type Rescale struct {
	From, To int32
	Reason   string
}

// decision is a Plan under construction.
type decision struct {
	*Input
	plan Plan
}

// NeedsMetrics reports whether the decision depends on metrics.
func (in *Input) NeedsMetrics() bool {
	return in.Target.Err == nil && in.Target.SelectorErr == nil && len(in.Rivals) == 0 && !in.disabled() &&
		in.replicas() >= in.least() && in.replicas() <= in.most()
}

func (in *Input) replicas() int32 { return in.Target.Scale.Spec.Replicas }
func (in *Input) least() int32    { return ptr.Deref(in.Autoscaler.Spec.MinReplicas, 1) }
func (in *Input) most() int32     { return in.Autoscaler.Spec.MaxReplicas }

// Decide returns how many replicas the target must have.
func Decide(in Input) Plan {
	d := &decision{Input: &in, plan: Plan{Status: *in.Autoscaler.Status.DeepCopy(), History: in.History}}
	d.plan.Status.ObservedGeneration = ptr.To(in.Autoscaler.Generation)
	if err := in.Target.Err; err != nil {
		d.set(autoscalingv2.AbleToScale, corev1.ConditionFalse, failedGetScale,
			"the HPA controller was unable to get the target's current scale: "+err.Error())
		d.warn(failedGetScale, err)
		return d.end()
	}
	d.set(autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale",
		"the HPA controller was able to get the target's current scale")
	d.plan.History = d.plan.History.begun(in.replicas(), in.Now)
	switch replicas := in.replicas(); {
	case in.disabled():
		d.set(autoscalingv2.ScalingActive, corev1.ConditionFalse, "ScalingDisabled",
			"scaling is disabled since the replica count of the target is zero")
		d.keep(nil)
	case replicas > in.most():
		d.rescale(in.most(), "Current number of replicas above Spec.MaxReplicas", nil)
	case replicas < in.least():
		d.rescale(in.least(), "Current number of replicas below Spec.MinReplicas", nil)
	default:
		d.follow()
	}
	if !d.plan.Soon && (d.plan.Rescale == nil || d.plan.Rescale.To > 0) && in.replicas() > 0 {
		d.awake()
	}
	return d.end()
}

// follow sizes the target by its metrics.
func (d *decision) follow() {
	wanted, err := d.propose()
	d.plan.Status.CurrentReplicas, d.plan.Status.CurrentMetrics = d.replicas(), wanted.statuses
	if err != nil {
		d.warn(failedCompute, err)
		return
	}
	desired := d.bounded(wanted.replicas)
	if desired == 0 && d.replicas() > 0 {
		d.toZero(wanted.statuses)
		return
	}
	if desired == d.replicas() {
		d.keep(wanted.statuses)
		return
	}
	reason := "All metrics below target"
	if desired > d.replicas() {
		reason = wanted.metric + " above target"
	}
	d.rescale(desired, reason, wanted.statuses)
}

func (d *decision) keep(statuses []autoscalingv2.MetricStatus) {
	d.plan.Status.CurrentReplicas, d.plan.Status.DesiredReplicas = d.replicas(), d.replicas()
	d.plan.Status.CurrentMetrics = statuses
}

func (d *decision) rescale(to int32, reason string, statuses []autoscalingv2.MetricStatus) {
	d.plan.Status.CurrentReplicas, d.plan.Status.DesiredReplicas = d.replicas(), to
	d.plan.Status.CurrentMetrics = statuses
	d.plan.Rescale = &Rescale{From: d.replicas(), To: to, Reason: reason}
}

func (d *decision) warn(reason string, err error) {
	d.plan.Events = append(d.plan.Events, events.Warning(reason, "%v", err))
}

// end drops warnings if the conditions have not changed since the last pass: they are emitted once, not each period.
func (d *decision) end() Plan {
	if sayTheSame(d.Autoscaler.Status.Conditions, d.plan.Status.Conditions) {
		d.plan.Events = nil
	}
	return d.plan
}

// Settle returns the plan after its rescale; err is the error of the rescale, if it failed.
func Settle(in Input, plan Plan, err error) Plan {
	d := &decision{Input: &in, plan: plan}
	rescale := plan.Rescale
	if err != nil {
		d.set(autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedUpdateScale",
			"the HPA controller was unable to update the target scale: "+err.Error())
		d.plan.Events = append(d.plan.Events, events.Warning("FailedRescale", "New size: %d; reason: %s; error: %v",
			rescale.To, rescale.Reason, err))
		d.plan.Status.DesiredReplicas = in.Autoscaler.Status.DesiredReplicas
		return d.end()
	}
	d.set(autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededRescale",
		fmt.Sprintf("the HPA controller was able to update the target scale to %d", rescale.To))
	d.plan.Events = append(d.plan.Events, events.Normal("SuccessfulRescale", "New size: %d; reason: %s", rescale.To,
		rescale.Reason))
	if rescale.To > 0 {
		d.awake()
	}
	d.plan.Status.LastScaleTime = timeOf(in.Now)
	d.plan.History = plan.History.rescaled(rescale.To-rescale.From, in.Now)
	return d.plan
}
