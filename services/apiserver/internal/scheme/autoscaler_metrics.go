package scheme

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// metricToV1 is a metric in the form of the annotation of v1.
func metricToV1(in *autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	out := autoscalingv1.MetricSpec{Type: autoscalingv1.MetricSourceType(in.Type)}
	if from := in.Object; from != nil {
		out.Object = &autoscalingv1.ObjectMetricSource{
			Target:     autoscalingv1.CrossVersionObjectReference(from.DescribedObject),
			MetricName: from.Metric.Name, Selector: from.Metric.Selector,
			TargetValue: amount(from.Target.Value), AverageValue: from.Target.AverageValue,
		}
	}
	if from := in.Pods; from != nil {
		out.Pods = &autoscalingv1.PodsMetricSource{MetricName: from.Metric.Name, Selector: from.Metric.Selector,
			TargetAverageValue: amount(from.Target.AverageValue)}
	}
	if from := in.Resource; from != nil {
		out.Resource = &autoscalingv1.ResourceMetricSource{Name: from.Name,
			TargetAverageUtilization: from.Target.AverageUtilization, TargetAverageValue: from.Target.AverageValue}
	}
	if from := in.ContainerResource; from != nil {
		out.ContainerResource = &autoscalingv1.ContainerResourceMetricSource{Name: from.Name,
			Container: from.Container, TargetAverageUtilization: from.Target.AverageUtilization,
			TargetAverageValue: from.Target.AverageValue}
	}
	if from := in.External; from != nil {
		out.External = &autoscalingv1.ExternalMetricSource{MetricName: from.Metric.Name,
			MetricSelector: from.Metric.Selector, TargetValue: from.Target.Value,
			TargetAverageValue: from.Target.AverageValue}
	}
	return out
}

func metricFromV1(in *autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	out := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(in.Type)}
	if from := in.Object; from != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: &from.TargetValue}
		if from.AverageValue != nil {
			target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType,
				AverageValue: from.AverageValue}
		}
		out.Object = &autoscalingv2.ObjectMetricSource{Target: target,
			DescribedObject: autoscalingv2.CrossVersionObjectReference(from.Target),
			Metric:          autoscalingv2.MetricIdentifier{Name: from.MetricName, Selector: from.Selector}}
	}
	if from := in.Pods; from != nil {
		out.Pods = &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: from.MetricName, Selector: from.Selector},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType,
				AverageValue: &from.TargetAverageValue}}
	}
	if from := in.Resource; from != nil {
		out.Resource = &autoscalingv2.ResourceMetricSource{Name: from.Name,
			Target: resourceTarget(from.TargetAverageUtilization, from.TargetAverageValue)}
	}
	if from := in.ContainerResource; from != nil {
		out.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{Name: from.Name,
			Container: from.Container,
			Target:    resourceTarget(from.TargetAverageUtilization, from.TargetAverageValue)}
	}
	if from := in.External; from != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, Value: from.TargetValue,
			AverageValue: from.TargetAverageValue}
		if from.TargetValue != nil {
			target.Type = autoscalingv2.ValueMetricType
		}
		out.External = &autoscalingv2.ExternalMetricSource{Target: target,
			Metric: autoscalingv2.MetricIdentifier{Name: from.MetricName, Selector: from.MetricSelector}}
	}
	return out
}

// resourceTarget is a utilization where v1 names one, else an amount.
func resourceTarget(utilization *int32, average *resource.Quantity) autoscalingv2.MetricTarget {
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: average,
		AverageUtilization: utilization}
	if utilization != nil {
		target.Type = autoscalingv2.UtilizationMetricType
	}
	return target
}

func metricStatusToV1(in *autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
	out := autoscalingv1.MetricStatus{Type: autoscalingv1.MetricSourceType(in.Type)}
	if from := in.Object; from != nil {
		out.Object = &autoscalingv1.ObjectMetricStatus{
			Target:     autoscalingv1.CrossVersionObjectReference(from.DescribedObject),
			MetricName: from.Metric.Name, Selector: from.Metric.Selector,
			CurrentValue: amount(from.Current.Value), AverageValue: from.Current.AverageValue,
		}
	}
	if from := in.Pods; from != nil {
		out.Pods = &autoscalingv1.PodsMetricStatus{MetricName: from.Metric.Name, Selector: from.Metric.Selector,
			CurrentAverageValue: amount(from.Current.AverageValue)}
	}
	if from := in.Resource; from != nil {
		out.Resource = &autoscalingv1.ResourceMetricStatus{Name: from.Name,
			CurrentAverageUtilization: from.Current.AverageUtilization,
			CurrentAverageValue:       amount(from.Current.AverageValue)}
	}
	if from := in.ContainerResource; from != nil {
		out.ContainerResource = &autoscalingv1.ContainerResourceMetricStatus{Name: from.Name,
			Container: from.Container, CurrentAverageUtilization: from.Current.AverageUtilization,
			CurrentAverageValue: amount(from.Current.AverageValue)}
	}
	if from := in.External; from != nil {
		out.External = &autoscalingv1.ExternalMetricStatus{MetricName: from.Metric.Name,
			MetricSelector: from.Metric.Selector, CurrentValue: amount(from.Current.Value),
			CurrentAverageValue: from.Current.AverageValue}
	}
	return out
}

func metricStatusFromV1(in *autoscalingv1.MetricStatus) autoscalingv2.MetricStatus {
	out := autoscalingv2.MetricStatus{Type: autoscalingv2.MetricSourceType(in.Type)}
	if from := in.Object; from != nil {
		out.Object = &autoscalingv2.ObjectMetricStatus{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(from.Target),
			Metric:          autoscalingv2.MetricIdentifier{Name: from.MetricName, Selector: from.Selector},
			Current: autoscalingv2.MetricValueStatus{Value: &from.CurrentValue,
				AverageValue: from.AverageValue}}
	}
	if from := in.Pods; from != nil {
		out.Pods = &autoscalingv2.PodsMetricStatus{
			Metric:  autoscalingv2.MetricIdentifier{Name: from.MetricName, Selector: from.Selector},
			Current: autoscalingv2.MetricValueStatus{AverageValue: &from.CurrentAverageValue}}
	}
	if from := in.Resource; from != nil {
		out.Resource = &autoscalingv2.ResourceMetricStatus{Name: from.Name, Current: autoscalingv2.MetricValueStatus{
			AverageUtilization: from.CurrentAverageUtilization, AverageValue: &from.CurrentAverageValue}}
	}
	if from := in.ContainerResource; from != nil {
		out.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: from.Name,
			Container: from.Container, Current: autoscalingv2.MetricValueStatus{
				AverageUtilization: from.CurrentAverageUtilization, AverageValue: &from.CurrentAverageValue}}
	}
	if from := in.External; from != nil {
		out.External = &autoscalingv2.ExternalMetricStatus{
			Metric: autoscalingv2.MetricIdentifier{Name: from.MetricName, Selector: from.MetricSelector},
			Current: autoscalingv2.MetricValueStatus{Value: &from.CurrentValue,
				AverageValue: from.CurrentAverageValue}}
	}
	return out
}

// amount is the quantity, or none of it.
func amount(q *resource.Quantity) resource.Quantity {
	if q == nil {
		return resource.Quantity{}
	}
	return *q
}
