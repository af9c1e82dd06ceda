package horizontalpodautoscaler

import (
	"errors"
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// proposal is how many replicas the metrics ask for together, and the metric that asks for most.
type proposal struct {
	replicas int32
	metric   string
	statuses []autoscalingv2.MetricStatus
}

// propose evaluates every metric. An unknown metric prevents a scale-down, not a scale-up.
func (d *decision) propose() (proposal, error) {
	if err := d.selectable(); err != nil {
		return proposal{}, err
	}
	metrics := d.Autoscaler.Spec.Metrics
	all := proposal{statuses: make([]autoscalingv2.MetricStatus, len(metrics))}
	var first error
	var firstReason string
	unknown := 0
	for i := range metrics {
		m, reason, err := d.measure(&metrics[i], d.Readings[i])
		if err != nil {
			d.warn(reason, err)
			if unknown++; first == nil {
				first, firstReason = err, reason
			}
			all.statuses[i] = autoscalingv2.MetricStatus{Type: metrics[i].Type}
			continue
		}
		all.statuses[i] = m.status
		if all.metric == "" || m.replicas > all.replicas {
			all.replicas, all.metric = m.replicas, m.name
		}
	}
	if unknown > 0 && (unknown == len(metrics) || all.replicas < d.replicas()) {
		d.set(autoscalingv2.ScalingActive, corev1.ConditionFalse, firstReason,
			fmt.Sprintf("the HPA was unable to compute the replica count: %v", first))
		return all, fmt.Errorf("invalid metrics (%d invalid out of %d), first error is: %w", unknown, len(metrics),
			first)
	}
	d.set(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound",
		"the HPA was able to successfully calculate a replica count from "+all.metric)
	return all, nil
}

// selectable refuses a target whose Pods are unknown or shared with another autoscaler.
func (d *decision) selectable() error {
	refuse := func(reason, event, message string) error {
		d.set(autoscalingv2.ScalingActive, corev1.ConditionFalse, reason, message)
		err := errors.New(message)
		d.warn(event, err)
		return err
	}
	switch {
	case d.Target.Scale.Status.Selector == "":
		d.set(autoscalingv2.ScalingActive, corev1.ConditionFalse, invalidSelector,
			"the HPA target's scale is missing a selector")
		err := errors.New("selector is required")
		d.warn(selectorRequired, err)
		return err
	case d.Target.SelectorErr != nil:
		return refuse(invalidSelector, invalidSelector, fmt.Sprintf(
			"couldn't convert selector into a corresponding internal selector object: %v", d.Target.SelectorErr))
	case len(d.Rivals) > 0:
		return refuse(ambiguous, ambiguous, fmt.Sprintf("pods by selector %s are controlled by multiple HPAs: [%s]",
			d.Target.Scale.Status.Selector, strings.Join(d.Rivals, " ")))
	}
	return nil
}
