package horizontalpodautoscaler

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// source is a metric source of which a metric has one.
type source struct {
	name     string
	is       autoscalingv2.MetricSourceType
	given    bool
	validate func(*field.Path) field.ErrorList
}

func sourcesOf(m *autoscalingv2.MetricSpec) []source {
	return []source{
		{"containerResource", autoscalingv2.ContainerResourceMetricSourceType, m.ContainerResource != nil,
			func(at *field.Path) field.ErrorList { return validateContainerResource(m.ContainerResource, at) }},
		{"external", autoscalingv2.ExternalMetricSourceType, m.External != nil,
			func(at *field.Path) field.ErrorList { return validateExternal(m.External, at) }},
		{"object", autoscalingv2.ObjectMetricSourceType, m.Object != nil,
			func(at *field.Path) field.ErrorList { return validateObject(m.Object, at) }},
		{"pods", autoscalingv2.PodsMetricSourceType, m.Pods != nil,
			func(at *field.Path) field.ErrorList { return validatePods(m.Pods, at) }},
		{"resource", autoscalingv2.ResourceMetricSourceType, m.Resource != nil,
			func(at *field.Path) field.ErrorList { return validateResource(m.Resource, at) }},
	}
}

// validateMetric wants a type and the source of this type alone.
func validateMetric(m *autoscalingv2.MetricSpec, at *field.Path) field.ErrorList {
	typePath, sources := at.Child("type"), sourcesOf(m)
	if m.Type == "" {
		return field.ErrorList{field.Required(typePath, "must specify a metric source type")}
	}
	var supported []autoscalingv2.MetricSourceType
	var errs field.ErrorList
	known := false
	for _, s := range sources {
		supported = append(supported, s.is)
		switch {
		case s.is == m.Type && !s.given:
			errs = append(errs, field.Required(at.Child(s.name),
				"must populate information for the given metric source"))
		case s.is != m.Type && s.given:
			errs = append(errs, field.Forbidden(at.Child(s.name), "must populate the given metric source only"))
		}
		known = known || s.is == m.Type
		if s.given {
			errs = append(errs, s.validate(at.Child(s.name))...)
		}
	}
	if !known {
		return field.ErrorList{field.NotSupported(typePath, m.Type, supported)}
	}
	return errs
}

func validateObject(s *autoscalingv2.ObjectMetricSource, at *field.Path) field.ErrorList {
	errs := validateReference(&s.DescribedObject, at.Child("describedObject"))
	errs = append(errs, validateMetricName(s.Metric.Name, at)...)
	errs = append(errs, validateTarget(&s.Target, at.Child("target"))...)
	return append(errs, wantValue(&s.Target, at.Child("target"))...)
}

func validateExternal(s *autoscalingv2.ExternalMetricSource, at *field.Path) field.ErrorList {
	target := at.Child("target")
	errs := append(validateMetricName(s.Metric.Name, at), validateTarget(&s.Target, target)...)
	errs = append(errs, wantValue(&s.Target, target)...)
	if s.Target.Value != nil && s.Target.AverageValue != nil {
		errs = append(errs, field.Forbidden(target.Child("value"),
			"may not set both a target value for metric and a per-pod target"))
	}
	return errs
}

func wantValue(t *autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	if t.Value != nil || t.AverageValue != nil {
		return nil
	}
	return field.ErrorList{field.Required(at.Child("averageValue"),
		"must set either a target value for metric or a per-pod target")}
}

func validatePods(s *autoscalingv2.PodsMetricSource, at *field.Path) field.ErrorList {
	errs := append(validateMetricName(s.Metric.Name, at), validateTarget(&s.Target, at.Child("target"))...)
	if s.Target.AverageValue == nil || s.Target.AverageValue.Sign() <= 0 {
		errs = append(errs, field.Required(at.Child("target", "averageValue"),
			"must specify a positive target averageValue"))
	}
	return errs
}

func validateContainerResource(s *autoscalingv2.ContainerResourceMetricSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Container == "" {
		errs = append(errs, field.Required(at.Child("container"), "must specify a container"))
	}
	return append(errs, validateResource(&autoscalingv2.ResourceMetricSource{Name: s.Name, Target: s.Target}, at)...)
}

func validateResource(s *autoscalingv2.ResourceMetricSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	target := at.Child("target")
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must specify a resource name"))
	}
	errs = append(errs, validateTarget(&s.Target, target)...)
	switch {
	case s.Target.AverageUtilization == nil && s.Target.AverageValue == nil:
		errs = append(errs, field.Required(target.Child("averageUtilization"),
			"must set either a target raw value or a target utilization"))
	case s.Target.AverageUtilization != nil && s.Target.AverageValue != nil:
		errs = append(errs, field.Forbidden(target.Child("averageValue"),
			"may not set both a target raw value and a target utilization"))
	}
	return errs
}

func validateMetricName(name string, at *field.Path) field.ErrorList {
	return fieldcheck.Required(name, at.Child("metric", "name"), content.IsPathSegmentName)
}

func validateTarget(t *autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	errs := fieldcheck.RequiredOneOf(t.Type, at.Child("type"), autoscalingv2.AverageValueMetricType,
		autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType)
	errs = append(errs, positive(t.Value, at.Child("value"))...)
	errs = append(errs, positive(t.AverageValue, at.Child("averageValue"))...)
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(at.Child("averageUtilization"), *t.AverageUtilization,
			"must be greater than 0"))
	}
	return errs
}

func positive(q *resource.Quantity, at *field.Path) field.ErrorList {
	if q == nil || q.Sign() > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, q.String(), "must be positive")}
}
