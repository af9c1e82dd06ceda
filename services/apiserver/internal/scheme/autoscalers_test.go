package scheme

import (
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func utilization(name corev1.ResourceName, percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{Name: name, Target: autoscalingv2.MetricTarget{
			Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}}}
}

// What v1 has no field for is found in the annotations in which the field keeps it.
func TestAutoscalerInV1(t *testing.T) {
	in := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"team": "a"}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			Metrics: []autoscalingv2.MetricSpec{utilization("memory", 70), utilization("cpu", 50)},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
				StabilizationWindowSeconds: ptr.To[int32](60)}},
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			CurrentMetrics: []autoscalingv2.MetricStatus{{Type: "Resource", Resource: &autoscalingv2.
				ResourceMetricStatus{Name: "cpu", Current: autoscalingv2.MetricValueStatus{
				AverageUtilization: ptr.To[int32](40), AverageValue: ptr.To(resource.MustParse("20m"))}}}},
			Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: "AbleToScale", Status: "True"}},
		},
	}
	var out autoscalingv1.HorizontalPodAutoscaler
	autoscalerToV1(in, &out)
	if ptr.Deref(out.Spec.TargetCPUUtilizationPercentage, 0) != 50 ||
		ptr.Deref(out.Status.CurrentCPUUtilizationPercentage, 0) != 40 {
		t.Errorf("cpu: %+v, %+v", out.Spec, out.Status)
	}
	for key, want := range map[string]string{
		"team": "a",
		"autoscaling.alpha.kubernetes.io/metrics": `[{"type":"Resource","resource":{"name":"memory",` +
			`"targetAverageUtilization":70}}]`,
		"autoscaling.alpha.kubernetes.io/behavior": `{"scaleDown":{"stabilizationWindowSeconds":60}}`,
		"autoscaling.alpha.kubernetes.io/conditions": `[{"type":"AbleToScale","status":"True",` +
			`"lastTransitionTime":null}]`,
		"autoscaling.alpha.kubernetes.io/current-metrics": `[{"type":"Resource","resource":{"name":"cpu",` +
			`"currentAverageUtilization":40,"currentAverageValue":"20m"}}]`,
	} {
		if out.Annotations[key] != want {
			t.Errorf("%s: %s, want %s", key, out.Annotations[key], want)
		}
	}
	if len(out.Annotations) != 5 || len(in.Annotations) != 1 {
		t.Errorf("annotations %v of %v", out.Annotations, in.Annotations)
	}
}

// A client of v1 that changes what it sees is heard, whatever else is kept in annotations.
func TestAutoscalerChangedInV1(t *testing.T) {
	ordered := []autoscalingv2.MetricSpec{utilization("cpu", 50), utilization("memory", 70)}
	for _, row := range []struct {
		name   string
		change func(*autoscalingv1.HorizontalPodAutoscaler)
		want   []autoscalingv2.MetricSpec
	}{
		{"nothing: even their order is kept", func(a *autoscalingv1.HorizontalPodAutoscaler) {
			a.Kind, a.APIVersion = "HorizontalPodAutoscaler", "autoscaling/v1"
		}, ordered},
		{"the target", func(a *autoscalingv1.HorizontalPodAutoscaler) {
			a.Spec.TargetCPUUtilizationPercentage = ptr.To[int32](60)
		}, []autoscalingv2.MetricSpec{utilization("memory", 70), utilization("cpu", 60)}},
		{"the other metrics", func(a *autoscalingv1.HorizontalPodAutoscaler) {
			delete(a.Annotations,
				metricsAnnotation)
		},
			[]autoscalingv2.MetricSpec{utilization("cpu", 50)}},
		{"the other metrics, to nonsense", func(a *autoscalingv1.HorizontalPodAutoscaler) {
			a.Annotations[metricsAnnotation] = "["
		}, []autoscalingv2.MetricSpec{utilization("cpu", 50)}},
		{"what is kept, to nonsense", func(a *autoscalingv1.HorizontalPodAutoscaler) {
			a.Annotations[exactAnnotation] = "["
		}, []autoscalingv2.MetricSpec{utilization("memory", 70), utilization("cpu", 50)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				Metrics: ordered}}
			var seen autoscalingv1.HorizontalPodAutoscaler
			autoscalerToV1(in, &seen)
			row.change(&seen)
			var out autoscalingv2.HorizontalPodAutoscaler
			autoscalerFromV1(&seen, &out)
			same := slices.EqualFunc(out.Spec.Metrics, row.want, func(a, b autoscalingv2.MetricSpec) bool {
				return a.Resource.Name == b.Resource.Name &&
					*a.Resource.Target.AverageUtilization == *b.Resource.Target.AverageUtilization
			})
			if !same || len(out.Annotations) != 0 {
				t.Errorf("%+v, annotations %v", out.Spec.Metrics, out.Annotations)
			}
		})
	}
}
