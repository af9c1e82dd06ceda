package horizontalpodautoscaler

import (
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var now = time.Unix(1_700_000_000, 0)

// settled are the default settings, but without a window that delays a scale-down.
var settled = Settings{SyncPeriod: 15 * time.Second, Tolerance: 0.1, CPUInitialization: 5 * time.Minute,
	InitialReadinessDelay: 30 * time.Second}

func amount(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }

// pod returns a Pod that has been running and ready for an hour and requests 100m and 100Mi.
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	started := metav1.NewTime(now.Add(-time.Hour))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": *amount("100m"), "memory": *amount("100Mi")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: started}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// unready makes a Pod that started that long ago and has never been ready.
func unready(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		started := metav1.NewTime(now.Add(-ago))
		p.Status.StartTime = &started
		p.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse,
			LastTransitionTime: started}
	}
}

func cpu(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu",
		Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: &percent}}}
}

// input returns an autoscaler of 1 to 10 replicas with a target of 50 % of the CPU request, and one replica for each
// sample: what each Pod uses, in thousandths.
func input(samples ...float64) Input {
	in := Input{Now: now, Settings: settled, Autoscaler: &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "a", Generation: 1},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: ptr.To[int32](1), MaxReplicas: 10,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
				Name: "web"},
			Metrics: []autoscalingv2.MetricSpec{cpu(50)}},
	}}
	reading := Reading{Pods: map[string]Sample{}}
	for i, sample := range samples {
		p := pod(fmt.Sprintf("web-%02d", i))
		in.Pods = append(in.Pods, p)
		reading.Pods[p.Name] = Sample{Amount: sample, At: now.Add(-10 * time.Second), Window: 30 * time.Second}
	}
	in.Readings = []Reading{reading}
	return sized(in, len(samples))
}

// sized returns the input with another number of replicas.
func sized[N int | int32](in Input, replicas N) Input {
	in.Target = Target{Selector: labels.SelectorFromSet(labels.Set{"app": "web"}), Scale: &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
		Status:     autoscalingv1.ScaleStatus{Replicas: int32(replicas), Selector: "app=web"}}}
	return in
}

// each returns count samples of one amount.
func each(count int, sample float64) []float64 {
	samples := make([]float64, count)
	for i := range samples {
		samples[i] = sample
	}
	return samples
}

// desired returns how many replicas there are after a plan.
func desired(in Input, plan Plan) int32 {
	if plan.Rescale != nil {
		return plan.Rescale.To
	}
	return in.replicas()
}

// said returns a condition as text.
func said(status autoscalingv2.HorizontalPodAutoscalerStatus,
	kindOf autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	c := kind.Find(status.Conditions, kindOf)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}
