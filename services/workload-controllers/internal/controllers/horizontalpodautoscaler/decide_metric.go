package horizontalpodautoscaler

import (
	"errors"
	"fmt"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
)

// Reading is the reading of one metric. Amounts are in thousandths.
type Reading struct {
	// Err is why the metric could not be read.
	Err error
	// Pods are the samples by Pod, of a metric about Pods.
	Pods map[string]Sample
	// Value is the metric of an object, or the sum of an external one.
	Value float64
}

// measured is how many replicas one metric asks for.
type measured struct {
	replicas int32
	name     string
	status   autoscalingv2.MetricStatus
}

// mostThousandths is the largest amount in thousandths that is computed exactly.
const mostThousandths = 1 << 62

// errNoSelector reports that a scale does not select its Pods.
var errNoSelector = errors.New("the scale has no selector")

var errNoPods = errors.New("no pods returned by selector while calculating replica count")

// measure evaluates one metric. On error it also returns the reason for the condition.
func (d *decision) measure(m *autoscalingv2.MetricSpec, read Reading) (got measured, reason string, err error) {
	var value autoscalingv2.MetricValueStatus
	switch {
	case m.Resource != nil:
		got.replicas, got.name, value, err = d.measureResource(m.Resource.Name, "", &m.Resource.Target, read)
		got.status.Resource = &autoscalingv2.ResourceMetricStatus{Name: m.Resource.Name, Current: value}
		err = explained(err, "failed to get %s utilization: %w", m.Resource.Name)
	case m.ContainerResource != nil:
		from := m.ContainerResource
		got.replicas, got.name, value, err = d.measureResource(from.Name, from.Container, &from.Target, read)
		got.status.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: from.Name,
			Container: from.Container, Current: value}
		err = explained(err, "failed to get %s container metric value: %w", from.Name)
	case m.Pods != nil:
		got.replicas, value, err = d.measurePods(m.Pods, read)
		got.name = "pods metric " + m.Pods.Metric.Name
		got.status.Pods = &autoscalingv2.PodsMetricStatus{Metric: m.Pods.Metric, Current: value}
		err = explained(err, "failed to get %s metric value: %w", "pods")
	case m.Object != nil:
		got.replicas, value, err = d.measureValue(&m.Object.Target, read)
		got.name = fmt.Sprintf("%s metric %s", m.Object.DescribedObject.Kind, m.Object.Metric.Name)
		got.status.Object = &autoscalingv2.ObjectMetricStatus{Metric: m.Object.Metric,
			DescribedObject: m.Object.DescribedObject, Current: value}
		err = explained(err, "failed to get %s metric value: %w", "object")
	case m.External != nil:
		got.replicas, value, err = d.measureValue(&m.External.Target, read)
		got.name = fmt.Sprintf("external metric %s(%+v)", m.External.Metric.Name, m.External.Metric.Selector)
		got.status.External = &autoscalingv2.ExternalMetricStatus{Metric: m.External.Metric, Current: value}
		err = explained(err, "failed to get %s external metric value: %w", m.External.Metric.Name)
	default:
		return got, "InvalidMetricSourceType", fmt.Errorf("unknown metric source type %q", m.Type)
	}
	got.status.Type = m.Type
	return got, "FailedGet" + string(m.Type) + "Metric", err
}

func explained[S ~string](err error, format string, what S) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format, what, err)
}

// measureResource compares the usage of the Pods, or of one container of each, with their requests or with an
// amount.
func (d *decision) measureResource(name corev1.ResourceName, container string, target *autoscalingv2.MetricTarget,
	read Reading) (replicas int32, metric string, value autoscalingv2.MetricValueStatus, err error) {
	if read.Err == nil && len(d.Pods) == 0 {
		read.Err = errNoPods
	}
	if read.Err != nil {
		return 0, "", value, read.Err
	}
	pods := d.group(name, read.Pods)
	switch {
	case len(pods.samples) == 0:
		return 0, "", value, errors.New("did not receive metrics for targeted pods (pods might be unready)")
	case target.AverageUtilization != nil:
		replicas, value, err = d.byUtilization(name, container, *target.AverageUtilization, pods)
		return replicas, fmt.Sprintf("%s resource utilization (percentage of request)", name), value, err
	case target.AverageValue != nil:
		replicas, value = d.byAverage(amountOf(target.AverageValue), pods)
		return replicas, fmt.Sprintf("%s resource", name), value, nil
	}
	return 0, "", value, errors.New("invalid resource metric source: neither an average utilization target nor an " +
		"average value (usage) target was set")
}

func (d *decision) byUtilization(name corev1.ResourceName, container string, percent int32, pods grouped) (int32,
	autoscalingv2.MetricValueStatus, error) {
	requests := map[string]float64{}
	for _, pod := range d.Pods {
		if !podview.IsActive(pod) {
			continue
		}
		request, err := requestOf(pod, name, container)
		if err != nil {
			return 0, autoscalingv2.MetricValueStatus{}, err
		}
		requests[pod.Name] = request
	}
	utilization := func(samples map[string]float64) float64 {
		var used, requested float64
		for pod, sample := range samples {
			used += sample
			requested += requests[pod]
		}
		if requested == 0 {
			return math.NaN()
		}
		return math.Trunc(used * 100 / requested)
	}
	current := utilization(pods.samples)
	if math.IsNaN(current) {
		return 0, autoscalingv2.MetricValueStatus{}, errors.New("no metrics returned matched known pods")
	}
	replicas := d.fit(pods, func(samples map[string]float64) float64 { return utilization(samples) / float64(percent) },
		func(pod string) float64 { return requests[pod] * max(100, float64(percent)) / 100 })
	return replicas, autoscalingv2.MetricValueStatus{AverageUtilization: ptr.To(clamp(current)),
		AverageValue: quantity(pods.average())}, nil
}

// byAverage compares the average of the Pods with an amount.
func (d *decision) byAverage(target float64, pods grouped) (int32, autoscalingv2.MetricValueStatus) {
	replicas := d.fit(pods, func(samples map[string]float64) float64 { return average(samples) / target },
		func(string) float64 { return target })
	return replicas, autoscalingv2.MetricValueStatus{AverageValue: quantity(pods.average())}
}

func (d *decision) measurePods(m *autoscalingv2.PodsMetricSource, read Reading) (int32,
	autoscalingv2.MetricValueStatus, error) {
	if read.Err == nil && len(d.Pods) == 0 {
		read.Err = errNoPods
	}
	if read.Err != nil {
		return 0, autoscalingv2.MetricValueStatus{}, read.Err
	}
	pods := d.group("", read.Pods)
	if len(pods.samples) == 0 {
		return 0, autoscalingv2.MetricValueStatus{},
			errors.New("did not receive metrics for targeted pods (pods might be unready)")
	}
	replicas, value := d.byAverage(amountOf(m.Target.AverageValue), pods)
	return replicas, value, nil
}

// measureValue compares one value with its target, in total or per replica.
func (d *decision) measureValue(target *autoscalingv2.MetricTarget, read Reading) (int32,
	autoscalingv2.MetricValueStatus, error) {
	switch {
	case read.Err != nil:
		return 0, autoscalingv2.MetricValueStatus{}, read.Err
	case target.AverageValue != nil:
		return d.perReplica(amountOf(target.AverageValue), read.Value)
	case target.Value == nil:
		return 0, autoscalingv2.MetricValueStatus{}, errors.New(
			"invalid metric source: neither a value target nor an average value target was set")
	}
	ratio := read.Value / amountOf(target.Value)
	value := autoscalingv2.MetricValueStatus{Value: quantity(read.Value)}
	switch {
	case d.replicas() == 0:
		return clamp(math.Ceil(ratio)), value, nil
	case d.tolerated(ratio):
		return d.replicas(), value, nil
	}
	if len(d.Pods) == 0 {
		return 0, value, fmt.Errorf("unable to calculate ready pods: %w", errNoPods)
	}
	ready := 0
	for _, pod := range d.Pods {
		if pod.Status.Phase == corev1.PodRunning && podview.IsReady(pod) {
			ready++
		}
	}
	if ratio > 0 {
		ready = max(ready, 1) // A starting replica is kept while there is load for it.
	}
	return clamp(math.Ceil(ratio * float64(ready))), value, nil
}

func (d *decision) perReplica(target, sum float64) (int32, autoscalingv2.MetricValueStatus, error) {
	existing := d.Target.Scale.Status.Replicas
	replicas := existing
	if existing == 0 || !d.tolerated(sum/(target*float64(existing))) {
		replicas = clamp(math.Ceil(sum / target))
	}
	each := math.Ceil(sum / max(1, float64(existing)))
	return replicas, autoscalingv2.MetricValueStatus{AverageValue: quantity(each)}, nil
}

// tolerated reports whether a metric is close enough to its target to change nothing.
func (d *decision) tolerated(ratio float64) bool {
	return ratio <= 1+d.tolerance(d.up()) && ratio >= 1-d.tolerance(d.down())
}

func (d *decision) tolerance(rules *autoscalingv2.HPAScalingRules) float64 {
	if rules == nil || rules.Tolerance == nil {
		return d.Settings.Tolerance
	}
	return rules.Tolerance.AsApproximateFloat64()
}

// amountOf returns a quantity in thousandths, exactly if possible.
func amountOf(q *resource.Quantity) float64 {
	if amount := q.AsApproximateFloat64() * 1000; math.Abs(amount) > mostThousandths {
		return amount
	}
	return float64(q.MilliValue())
}

func quantity(thousandths float64) *resource.Quantity {
	return resource.NewMilliQuantity(int64(min(max(thousandths, -mostThousandths), mostThousandths)),
		resource.DecimalSI)
}
