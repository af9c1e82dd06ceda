package horizontalpodautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/seconds"
)

// Without a behavior, an autoscaler at most doubles its target in one pass, or raises it to fourTimes.
const (
	doubling  = 2
	fourTimes = 4
)

// limit is a bound with its reason and message.
type limit struct {
	at              int32
	reason, message string
}

const (
	tooFast = "the desired replica count is increasing faster than the maximum scale rate"
	tooSoon = "the desired replica count is decreasing faster than the maximum scale rate"
	tooMany = "the desired replica count is more than the maximum replica count"
	tooFew  = "the desired replica count is less than the minimum replica count"
)

// bounded returns how many of the wanted replicas are allowed now: stabilized, at the pace of the rules, within the
// bounds.
func (d *decision) bounded(wanted int32) int32 {
	stable := d.stabilized(wanted)
	desired := stable
	above, below := d.ceiling(), d.floor()
	switch {
	case stable > above.at:
		desired = above.at
		d.set(autoscalingv2.ScalingLimited, corev1.ConditionTrue, above.reason, above.message)
	case stable < below.at:
		desired = below.at
		d.set(autoscalingv2.ScalingLimited, corev1.ConditionTrue, below.reason, below.message)
	default:
		d.set(autoscalingv2.ScalingLimited, corev1.ConditionFalse, "DesiredWithinRange",
			"the desired count is within the acceptable range")
	}
	return desired
}

// stabilized returns the safest recommendation within the windows: no more than the lowest in the scale-up window,
// no fewer than the highest in the scale-down window.
func (d *decision) stabilized(wanted int32) int32 {
	up, down := d.window(d.up(), 0), d.window(d.down(), d.Settings.DownscaleStabilization)
	lowest := d.plan.History.lowest(wanted, up, d.Now)
	highest := d.plan.History.highest(wanted, down, d.Now)
	d.plan.History = d.plan.History.recommended(wanted, d.Now, max(up, down))
	stable := min(max(d.replicas(), lowest), highest)
	if d.Autoscaler.Spec.Behavior == nil {
		stable = highest
	}
	switch {
	case stable == wanted:
		d.set(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ReadyForNewScale",
			"recommended size matches current size")
	case stable < wanted:
		d.set(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ScaleUpStabilized",
			"recent recommendations were lower than current one, applying the lowest recent recommendation")
	default:
		d.set(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ScaleDownStabilized",
			"recent recommendations were higher than current one, applying the highest recent recommendation")
	}
	return stable
}

// ceiling returns the most replicas allowed.
func (d *decision) ceiling() limit {
	pace := limit{reason: "ScaleUpLimit", message: tooFast}
	if d.Autoscaler.Spec.Behavior == nil {
		pace.at = clamp(max(doubling*float64(d.replicas()), fourTimes))
	} else {
		pace.at = max(d.replicas(), d.allowed(d.up(), true))
	}
	if pace.at < d.most() {
		return pace
	}
	return limit{d.most(), "TooManyReplicas", tooMany}
}

// floor returns the fewest replicas allowed.
func (d *decision) floor() limit {
	if d.Autoscaler.Spec.Behavior != nil {
		pace := limit{min(d.replicas(), d.allowed(d.down(), false)), "ScaleDownLimit", tooSoon}
		if pace.at > d.least() {
			return pace
		}
	}
	return limit{d.least(), "TooFewReplicas", tooFew}
}

// allowed returns how far the rules of one direction let the replicas change, each policy counted from the start of
// its period.
func (d *decision) allowed(rules *autoscalingv2.HPAScalingRules, up bool) int32 {
	choice := autoscalingv2.MaxChangePolicySelect
	if rules != nil {
		choice = ptr.Deref(rules.SelectPolicy, choice)
	}
	if rules == nil || len(rules.Policies) == 0 || choice == autoscalingv2.DisabledPolicySelect {
		return d.replicas()
	}
	largest := (choice == autoscalingv2.MaxChangePolicySelect) == up
	var chosen float64
	for i, policy := range rules.Policies {
		period := seconds.Of(policy.PeriodSeconds)
		start := float64(int64(d.replicas()) - d.plan.History.changed(period, d.Now))
		to := reach(start, policy, up)
		if i == 0 || largest == (to > chosen) {
			chosen = to
		}
	}
	return clamp(chosen)
}

// reach returns how far a policy goes from the number at the start of its period: from zero to at least one replica.
func reach(start float64, policy autoscalingv2.HPAScalingPolicy, up bool) float64 {
	percent := policy.Type == autoscalingv2.PercentScalingPolicy
	switch value := float64(policy.Value); {
	case percent && up:
		return max(1, math.Ceil(start*(100+value)/100))
	case percent:
		return math.Trunc(start * (100 - value) / 100)
	case up:
		return start + value
	default:
		return start - value
	}
}

func (d *decision) up() *autoscalingv2.HPAScalingRules {
	if d.Autoscaler.Spec.Behavior == nil {
		return nil
	}
	return d.Autoscaler.Spec.Behavior.ScaleUp
}

func (d *decision) down() *autoscalingv2.HPAScalingRules {
	if d.Autoscaler.Spec.Behavior == nil {
		return nil
	}
	return d.Autoscaler.Spec.Behavior.ScaleDown
}

func (d *decision) window(rules *autoscalingv2.HPAScalingRules, otherwise time.Duration) time.Duration {
	if rules == nil || rules.StabilizationWindowSeconds == nil {
		return otherwise
	}
	return seconds.Of(*rules.StabilizationWindowSeconds)
}

// clamp converts to a valid number of replicas.
func clamp(replicas float64) int32 {
	return int32(min(max(replicas, 0), math.MaxInt32))
}
