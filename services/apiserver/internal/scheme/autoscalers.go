package scheme

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// The annotations in which autoscaling/v1 keeps what it has no fields for, in the forms of its own types.
const (
	metricsAnnotation        = "autoscaling.alpha.kubernetes.io/metrics"
	behaviorAnnotation       = "autoscaling.alpha.kubernetes.io/behavior"
	conditionsAnnotation     = "autoscaling.alpha.kubernetes.io/conditions"
	currentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics"
	// exactAnnotation keeps what those cannot say either, such as the order of the metrics. It counts as long as
	// nothing else is changed in the v1 object.
	exactAnnotation = "keelson.dev/autoscaling-v2"
)

// AutoscalerAnnotations are the annotations that belong to an object of autoscaling/v1 alone.
func AutoscalerAnnotations() []string {
	return []string{metricsAnnotation, behaviorAnnotation, conditionsAnnotation, currentMetricsAnnotation,
		exactAnnotation}
}

// addAutoscalerConversions makes the HorizontalPodAutoscaler of autoscaling/v1 a second shape of that of v2.
func addAutoscalerConversions(scheme *runtime.Scheme) error {
	if err := convertible(scheme, autoscalerToV1, autoscalerFromV1); err != nil {
		return err
	}
	return convertible(scheme,
		func(in *autoscalingv2.HorizontalPodAutoscalerList, out *autoscalingv1.HorizontalPodAutoscalerList) {
			out.ListMeta = in.ListMeta
			out.Items = make([]autoscalingv1.HorizontalPodAutoscaler, len(in.Items))
			for i := range in.Items {
				autoscalerToV1(&in.Items[i], &out.Items[i])
			}
		},
		func(in *autoscalingv1.HorizontalPodAutoscalerList, out *autoscalingv2.HorizontalPodAutoscalerList) {
			out.ListMeta = in.ListMeta
			out.Items = make([]autoscalingv2.HorizontalPodAutoscaler, len(in.Items))
			for i := range in.Items {
				autoscalerFromV1(&in.Items[i], &out.Items[i])
			}
		})
}

// exact is what v1 has no fields for.
type exact struct {
	Metrics        []autoscalingv2.MetricSpec                       `json:"metrics,omitempty"`
	Behavior       *autoscalingv2.HorizontalPodAutoscalerBehavior   `json:"behavior,omitempty"`
	CurrentMetrics []autoscalingv2.MetricStatus                     `json:"currentMetrics,omitempty"`
	Conditions     []autoscalingv2.HorizontalPodAutoscalerCondition `json:"conditions,omitempty"`
}

func autoscalerToV1(in *autoscalingv2.HorizontalPodAutoscaler, out *autoscalingv1.HorizontalPodAutoscaler) {
	saidInV1(in, out)
	var back autoscalingv2.HorizontalPodAutoscaler
	heardFromV1(out, &back)
	if equality.Semantic.DeepEqual(in.Spec, back.Spec) && equality.Semantic.DeepEqual(in.Status, back.Status) {
		return
	}
	annotate(out, exactAnnotation, exact{in.Spec.Metrics, in.Spec.Behavior, in.Status.CurrentMetrics,
		in.Status.Conditions})
}

func autoscalerFromV1(in *autoscalingv1.HorizontalPodAutoscaler, out *autoscalingv2.HorizontalPodAutoscaler) {
	heardFromV1(in, out)
	var kept exact
	if !annotated(in, exactAnnotation, &kept) {
		return
	}
	meant := *out
	meant.Spec.Metrics, meant.Spec.Behavior = kept.Metrics, kept.Behavior
	meant.Status.CurrentMetrics, meant.Status.Conditions = kept.CurrentMetrics, kept.Conditions
	var said autoscalingv1.HorizontalPodAutoscaler
	saidInV1(&meant, &said)
	said.Annotations = withAnnotation(said.Annotations, exactAnnotation, in.Annotations[exactAnnotation])
	same := equality.Semantic.DeepEqual
	if same(said.Annotations, in.Annotations) && same(said.Spec, in.Spec) && same(said.Status, in.Status) {
		*out = meant
	}
}

// saidInV1 puts into the fields and annotations of v1 what they have words for.
func saidInV1(in *autoscalingv2.HorizontalPodAutoscaler, out *autoscalingv1.HorizontalPodAutoscaler) {
	out.ObjectMeta = in.ObjectMeta
	out.Annotations = withoutAnnotations(in.Annotations)
	out.Spec = autoscalingv1.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
		MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
	}
	var others []autoscalingv1.MetricSpec
	for i := range in.Spec.Metrics {
		metric := &in.Spec.Metrics[i]
		if out.Spec.TargetCPUUtilizationPercentage == nil && isUtilization(metric) {
			out.Spec.TargetCPUUtilizationPercentage = metric.Resource.Target.AverageUtilization
			continue
		}
		others = append(others, metricToV1(metric))
	}
	annotateList(out, metricsAnnotation, others)
	if in.Spec.Behavior != nil {
		annotate(out, behaviorAnnotation, in.Spec.Behavior)
	}
	statusToV1(in, out)
}

func statusToV1(in *autoscalingv2.HorizontalPodAutoscaler, out *autoscalingv1.HorizontalPodAutoscaler) {
	status := &in.Status
	out.Status = autoscalingv1.HorizontalPodAutoscalerStatus{
		ObservedGeneration: status.ObservedGeneration, LastScaleTime: status.LastScaleTime,
		CurrentReplicas: status.CurrentReplicas, DesiredReplicas: status.DesiredReplicas,
	}
	current := make([]autoscalingv1.MetricStatus, len(status.CurrentMetrics))
	for i := range status.CurrentMetrics {
		metric := &status.CurrentMetrics[i]
		current[i] = metricStatusToV1(metric)
		if out.Status.CurrentCPUUtilizationPercentage == nil && isCurrentUtilization(metric) {
			out.Status.CurrentCPUUtilizationPercentage = metric.Resource.Current.AverageUtilization
		}
	}
	saysAll := len(current) == 1 && isCurrentUtilization(&status.CurrentMetrics[0]) &&
		status.CurrentMetrics[0].Resource.Current.AverageValue == nil
	if !saysAll {
		annotateList(out, currentMetricsAnnotation, current)
	}
	conditions := make([]autoscalingv1.HorizontalPodAutoscalerCondition, len(status.Conditions))
	for i, c := range status.Conditions {
		conditions[i] = autoscalingv1.HorizontalPodAutoscalerCondition{
			Type: autoscalingv1.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status, Reason: c.Reason,
			Message: c.Message, LastTransitionTime: c.LastTransitionTime, ObservedGeneration: c.ObservedGeneration,
		}
	}
	annotateList(out, conditionsAnnotation, conditions)
}

// heardFromV1 is what the fields and annotations of v1 mean. An annotation that cannot be read means nothing.
func heardFromV1(in *autoscalingv1.HorizontalPodAutoscaler, out *autoscalingv2.HorizontalPodAutoscaler) {
	out.ObjectMeta = in.ObjectMeta
	out.Annotations = withoutAnnotations(in.Annotations)
	out.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
		MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
	}
	var others []autoscalingv1.MetricSpec
	annotated(in, metricsAnnotation, &others)
	for i := range others {
		out.Spec.Metrics = append(out.Spec.Metrics, metricFromV1(&others[i]))
	}
	if target := in.Spec.TargetCPUUtilizationPercentage; target != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, autoscalingv2.MetricSpec{
			Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: target}}})
	}
	var behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
	if annotated(in, behaviorAnnotation, &behavior) {
		out.Spec.Behavior = behavior
	}
	statusFromV1(in, out)
}

func statusFromV1(in *autoscalingv1.HorizontalPodAutoscaler, out *autoscalingv2.HorizontalPodAutoscaler) {
	status := &in.Status
	out.Status = autoscalingv2.HorizontalPodAutoscalerStatus{
		ObservedGeneration: status.ObservedGeneration, LastScaleTime: status.LastScaleTime,
		CurrentReplicas: status.CurrentReplicas, DesiredReplicas: status.DesiredReplicas,
	}
	var current []autoscalingv1.MetricStatus
	switch use := status.CurrentCPUUtilizationPercentage; {
	case annotated(in, currentMetricsAnnotation, &current):
		for i := range current {
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, metricStatusFromV1(&current[i]))
		}
	case use != nil:
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: use}}}}
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	annotated(in, conditionsAnnotation, &conditions)
	for _, c := range conditions {
		out.Status.Conditions = append(out.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
			Type: autoscalingv2.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status, Reason: c.Reason,
			Message: c.Message, LastTransitionTime: c.LastTransitionTime, ObservedGeneration: c.ObservedGeneration,
		})
	}
}

// isUtilization reports whether the metric is the one that v1 has a field for.
func isUtilization(m *autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil &&
		m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil
}

func isCurrentUtilization(m *autoscalingv2.MetricStatus) bool {
	return m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil &&
		m.Resource.Name == corev1.ResourceCPU && m.Resource.Current.AverageUtilization != nil
}

func annotateList[T any](to *autoscalingv1.HorizontalPodAutoscaler, key string, list []T) {
	if len(list) > 0 {
		annotate(to, key, list)
	}
}

// annotate adds an annotation. Everything in these types can be written as JSON, except amounts that no client can have
// given.
func annotate(to *autoscalingv1.HorizontalPodAutoscaler, key string, value any) {
	if content, err := json.Marshal(value); err == nil {
		to.Annotations = withAnnotation(to.Annotations, key, string(content))
	}
}

// annotated reads an annotation, and reports whether it is there and readable.
func annotated[T any](from *autoscalingv1.HorizontalPodAutoscaler, key string, into *T) bool {
	content, ok := from.Annotations[key]
	if !ok {
		return false
	}
	var read T
	if json.Unmarshal([]byte(content), &read) != nil {
		return false
	}
	*into = read
	return true
}

func withAnnotation(annotations map[string]string, key, value string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	return annotations
}

// withoutAnnotations returns a copy without those of v1.
func withoutAnnotations(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	for _, key := range AutoscalerAnnotations() {
		delete(kept, key)
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}
