package horizontalpodautoscaler

import (
	"fmt"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	quantity "k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// shownMetrics is how many metrics a table shows before it counts the rest.
const shownMetrics = 2

var (
	specHelp   = autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()
	statusHelp = autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()
)

// columns are what kubectl get hpa prints.
var columns = resource.NewColumns(
	resource.NameColumn[*autoscalingv2.HorizontalPodAutoscaler](),
	resource.Column("Reference", "string", specHelp["scaleTargetRef"],
		func(a *autoscalingv2.HorizontalPodAutoscaler) any {
			return a.Spec.ScaleTargetRef.Kind + "/" + a.Spec.ScaleTargetRef.Name
		}),
	resource.Column("Targets", "string", specHelp["metrics"],
		func(a *autoscalingv2.HorizontalPodAutoscaler) any { return targets(a) }),
	resource.Column("MinPods", "string", specHelp["minReplicas"],
		func(a *autoscalingv2.HorizontalPodAutoscaler) any {
			if a.Spec.MinReplicas == nil {
				return "<unset>"
			}
			return strconv.Itoa(int(*a.Spec.MinReplicas))
		}),
	resource.Column("MaxPods", "integer", specHelp["maxReplicas"],
		func(a *autoscalingv2.HorizontalPodAutoscaler) any { return int64(a.Spec.MaxReplicas) }),
	resource.Column("Replicas", "integer", statusHelp["currentReplicas"],
		func(a *autoscalingv2.HorizontalPodAutoscaler) any { return int64(a.Status.CurrentReplicas) }),
	resource.AgeColumn[*autoscalingv2.HorizontalPodAutoscaler](),
)

// targets are, of each metric, what it is and what it should be.
func targets(a *autoscalingv2.HorizontalPodAutoscaler) string {
	if len(a.Spec.Metrics) == 0 {
		return table.None
	}
	var cells []string
	for i := range a.Spec.Metrics[:min(shownMetrics, len(a.Spec.Metrics))] {
		var current autoscalingv2.MetricStatus
		if i < len(a.Status.CurrentMetrics) {
			current = a.Status.CurrentMetrics[i]
		}
		cells = append(cells, target(&a.Spec.Metrics[i], &current))
	}
	text := strings.Join(cells, ", ")
	if more := len(a.Spec.Metrics) - len(cells); more > 0 {
		text += fmt.Sprintf(" + %d more...", more)
	}
	return text
}

// target is one metric. The status of another type than the metric tells nothing of it.
func target(m *autoscalingv2.MetricSpec, s *autoscalingv2.MetricStatus) string {
	var current autoscalingv2.MetricValueStatus
	switch {
	case m.External != nil:
		if s.External != nil {
			current = s.External.Current
		}
		return valueOrAverage(&m.External.Target, &current)
	case m.Object != nil:
		if s.Object != nil {
			current = s.Object.Current
		}
		return valueOrAverage(&m.Object.Target, &current)
	case m.Pods != nil:
		if s.Pods != nil {
			current = s.Pods.Current
		}
		return known(current.AverageValue) + "/" + known(m.Pods.Target.AverageValue)
	case m.Resource != nil:
		if s.Resource != nil {
			current = s.Resource.Current
		}
		return string(m.Resource.Name) + ": " + useOrAverage(&m.Resource.Target, &current)
	case m.ContainerResource != nil:
		if s.ContainerResource != nil {
			current = s.ContainerResource.Current
		}
		return string(m.ContainerResource.Name) + ": " + useOrAverage(&m.ContainerResource.Target, &current)
	}
	return table.Unknown
}

func valueOrAverage(t *autoscalingv2.MetricTarget, current *autoscalingv2.MetricValueStatus) string {
	if t.AverageValue != nil {
		return known(current.AverageValue) + "/" + t.AverageValue.String() + " (avg)"
	}
	return known(current.Value) + "/" + known(t.Value)
}

func useOrAverage(t *autoscalingv2.MetricTarget, current *autoscalingv2.MetricValueStatus) string {
	if t.AverageValue != nil {
		return known(current.AverageValue) + "/" + t.AverageValue.String()
	}
	wanted := "<auto>"
	if t.AverageUtilization != nil {
		wanted = percent(t.AverageUtilization)
	}
	return percent(current.AverageUtilization) + "/" + wanted
}

func known(q *quantity.Quantity) string {
	if q == nil {
		return table.Unknown
	}
	return q.String()
}

func percent(p *int32) string {
	if p == nil {
		return table.Unknown
	}
	return fmt.Sprintf("%d%%", *p)
}
