package horizontalpodautoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/conditions"
)

// kind reads and writes the conditions of an autoscaler.
var kind conditions.Kind[autoscalingv2.HorizontalPodAutoscalerCondition,
	autoscalingv2.HorizontalPodAutoscalerConditionType] = func(c *autoscalingv2.HorizontalPodAutoscalerCondition,
) conditions.Fields[autoscalingv2.HorizontalPodAutoscalerConditionType] {
	return conditions.Fields[autoscalingv2.HorizontalPodAutoscalerConditionType]{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: &c.LastTransitionTime, ObservedGeneration: ptr.Deref(c.ObservedGeneration, 0),
	}
}

func (d *decision) set(condition autoscalingv2.HorizontalPodAutoscalerConditionType, is corev1.ConditionStatus, reason,
	message string) {
	d.plan.Status.Conditions, _ = kind.Set(d.plan.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
		Type: condition, Status: is, Reason: reason, Message: message,
		ObservedGeneration: ptr.To(d.Autoscaler.Generation),
	}, d.Now)
}

// sayTheSame reports whether two lists of conditions are equal apart from the generation.
func sayTheSame(before, after []autoscalingv2.HorizontalPodAutoscalerCondition) bool {
	if len(before) != len(after) {
		return false
	}
	for _, c := range after {
		last := kind.Find(before, c.Type)
		if last == nil || last.Status != c.Status || last.Reason != c.Reason || last.Message != c.Message {
			return false
		}
	}
	return true
}

func timeOf(now time.Time) *metav1.Time { return ptr.To(metav1.NewTime(now)) }
