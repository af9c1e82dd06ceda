package horizontalpodautoscaler

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/defaults"
)

// The values of the fields that a client may leave out.
const (
	defaultMinReplicas    = 1
	defaultCPUUtilization = 80
	defaultPeriodSeconds  = 15
	defaultUpPods         = 4
	defaultPercent        = 100
)

// Default fills in the fields that a leaves out. How long a scale-down waits is the controller's to say.
func Default(a *autoscalingv2.HorizontalPodAutoscaler) {
	spec := &a.Spec
	defaults.SetPtr(&spec.MinReplicas, defaultMinReplicas)
	if len(spec.Metrics) == 0 {
		utilization := int32(defaultCPUUtilization)
		spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilization}}}}
	}
	if spec.Behavior == nil {
		return
	}
	share := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: defaultPercent,
		PeriodSeconds: defaultPeriodSeconds}
	setRules(&spec.Behavior.ScaleUp, autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy,
		Value: defaultUpPods, PeriodSeconds: defaultPeriodSeconds}, share)
	defaults.SetPtr(&spec.Behavior.ScaleUp.StabilizationWindowSeconds, 0)
	setRules(&spec.Behavior.ScaleDown, share)
}

// setRules fills in the rules of one direction. An empty list of policies is the client's own, and not valid.
func setRules(rules **autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	if *rules == nil {
		*rules = &autoscalingv2.HPAScalingRules{}
	}
	defaults.SetPtr(&(*rules).SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if (*rules).Policies == nil {
		(*rules).Policies = policies
	}
}
