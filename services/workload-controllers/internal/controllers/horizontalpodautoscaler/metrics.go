package horizontalpodautoscaler

import (
	"context"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// sources are where metrics are read.
type sources struct {
	resources metricsclient.PodMetricsesGetter
	custom    custom_metrics.CustomMetricsClient
	external  external_metrics.ExternalMetricsClient
}

// read reads the metrics of an autoscaler. One request serves all its resource metrics.
func (s sources) read(ctx context.Context, a *autoscalingv2.HorizontalPodAutoscaler,
	selector labels.Selector) []Reading {
	var used *metricsv1beta1.PodMetricsList
	var err error
	list := func() (*metricsv1beta1.PodMetricsList, error) {
		if used == nil && err == nil {
			used, err = s.resources.PodMetricses(a.Namespace).List(ctx,
				metav1.ListOptions{LabelSelector: selector.String()})
		}
		return used, err
	}
	readings := make([]Reading, len(a.Spec.Metrics))
	for i := range a.Spec.Metrics {
		readings[i] = s.readOne(a.Namespace, &a.Spec.Metrics[i], selector, list)
	}
	return readings
}

func (s sources) readOne(namespace string, m *autoscalingv2.MetricSpec, selector labels.Selector,
	list func() (*metricsv1beta1.PodMetricsList, error)) Reading {
	switch {
	case m.Resource != nil:
		return resourceReading(m.Resource.Name, "", list)
	case m.ContainerResource != nil:
		return resourceReading(m.ContainerResource.Name, m.ContainerResource.Container, list)
	case m.Pods != nil:
		return s.ofPods(namespace, &m.Pods.Metric, selector)
	case m.Object != nil:
		return s.ofObject(namespace, &m.Object.DescribedObject, &m.Object.Metric)
	case m.External != nil:
		return s.ofOutside(namespace, &m.External.Metric)
	}
	return Reading{}
}

func resourceReading(name corev1.ResourceName, container string, list func() (*metricsv1beta1.PodMetricsList, error),
) Reading {
	unable := func(err error) Reading {
		return Reading{Err: fmt.Errorf("unable to get metrics for resource %s: %w", name, err)}
	}
	used, err := list()
	switch {
	case err != nil:
		return unable(fmt.Errorf("unable to fetch metrics from resource metrics API: %w", err))
	case len(used.Items) == 0:
		return unable(errors.New("no metrics returned from resource metrics API"))
	}
	samples := map[string]Sample{}
	for i := range used.Items {
		pod := &used.Items[i]
		amount, complete := usedBy(pod, name, container)
		if complete {
			samples[pod.Name] = Sample{Amount: amount, At: pod.Timestamp.Time, Window: pod.Window.Duration}
		}
	}
	return Reading{Pods: samples}
}

// usedBy returns the usage of a Pod's containers, or of one of them. If one container is unknown, so is the Pod.
func usedBy(pod *metricsv1beta1.PodMetrics, name corev1.ResourceName, container string) (amount float64,
	complete bool) {
	counted := 0
	for _, c := range pod.Containers {
		if container != "" && c.Name != container {
			continue
		}
		use, ok := c.Usage[name]
		if !ok {
			return 0, false
		}
		amount += amountOf(&use)
		counted++
	}
	return amount, counted > 0
}

func (s sources) ofPods(namespace string, metric *autoscalingv2.MetricIdentifier, selector labels.Selector) Reading {
	which, err := metav1.LabelSelectorAsSelector(orAll(metric.Selector))
	if err != nil {
		return Reading{Err: err}
	}
	list, err := s.custom.NamespacedMetrics(namespace).GetForObjects(schema.GroupKind{Kind: "Pod"}, selector,
		metric.Name, which)
	if err == nil && len(list.Items) == 0 {
		err = errors.New("no metrics returned from custom metrics API")
	}
	if err != nil {
		return Reading{Err: fmt.Errorf("unable to get metric %s: unable to fetch metrics from custom metrics API: %w",
			metric.Name, err)}
	}
	samples := map[string]Sample{}
	for i := range list.Items {
		item := &list.Items[i]
		samples[item.DescribedObject.Name] = Sample{Amount: amountOf(&item.Value), At: item.Timestamp.Time}
	}
	return Reading{Pods: samples}
}

func (s sources) ofObject(namespace string, object *autoscalingv2.CrossVersionObjectReference,
	metric *autoscalingv2.MetricIdentifier) Reading {
	which, err := metav1.LabelSelectorAsSelector(orAll(metric.Selector))
	if err != nil {
		return Reading{Err: err}
	}
	kind := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind).GroupKind()
	client := s.custom.NamespacedMetrics(namespace)
	if kind == (schema.GroupKind{Kind: "Namespace"}) {
		client = s.custom.RootScopedMetrics()
	}
	value, err := client.GetForObject(kind, object.Name, metric.Name, which)
	if err != nil {
		return Reading{Err: fmt.Errorf("unable to get metric %s: %s on %s %s: "+
			"unable to fetch metrics from custom metrics API: %w", metric.Name, object.Kind, namespace, object.Name,
			err)}
	}
	return Reading{Value: amountOf(&value.Value)}
}

// ofOutside adds up the values of an external metric.
func (s sources) ofOutside(namespace string, metric *autoscalingv2.MetricIdentifier) Reading {
	which, err := metav1.LabelSelectorAsSelector(orAll(metric.Selector))
	if err != nil {
		return Reading{Err: err}
	}
	list, err := s.external.NamespacedMetrics(namespace).List(metric.Name, which)
	switch {
	case apierrors.IsNotFound(err):
		err = errors.New("no external metrics API (external.metrics.k8s.io) registered, or it does not know the metric")
	case err == nil && len(list.Items) == 0:
		err = errors.New("no metrics returned from external metrics API")
	}
	if err != nil {
		return Reading{Err: fmt.Errorf("unable to get external metric %s/%s/%s: "+
			"unable to fetch metrics from external metrics API: %w", namespace, metric.Name,
			metav1.FormatLabelSelector(metric.Selector), err)}
	}
	var sum float64
	for i := range list.Items {
		sum += amountOf(&list.Items[i].Value)
	}
	return Reading{Value: sum}
}

// orAll returns the selector, or one that selects everything.
func orAll(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if selector == nil {
		return &metav1.LabelSelector{}
	}
	return selector
}
