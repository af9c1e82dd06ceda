package horizontalpodautoscaler

import (
	"slices"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
)

type policies = []autoscalingv2.HPAScalingPolicy

func rules(window int32, choice autoscalingv2.ScalingPolicySelect, list policies) *autoscalingv2.HPAScalingRules {
	return &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &window, SelectPolicy: &choice, Policies: list}
}

func pods(value, seconds int32) autoscalingv2.HPAScalingPolicy {
	return autoscalingv2.HPAScalingPolicy{Type: "Pods", Value: value, PeriodSeconds: seconds}
}

func percent(value, seconds int32) autoscalingv2.HPAScalingPolicy {
	return autoscalingv2.HPAScalingPolicy{Type: "Percent", Value: value, PeriodSeconds: seconds}
}

// behaved returns an autoscaler of 1 to 2000 replicas whose external metric asks for the wanted number.
func behaved(replicas, wanted int32, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) Input {
	in := sized(input(), replicas)
	in.Autoscaler.Spec.MaxReplicas, in.Autoscaler.Spec.Behavior = 2000, behavior
	in.Settings.Tolerance = 0
	in.Autoscaler.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: "External",
		External: &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "jobs"},
			Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: amount("1")}}}}
	in.Readings = []Reading{{Value: float64(wanted) * 1000}}
	return in
}

// walk makes a pass each period and returns the numbers of replicas until they stay.
func walk(in Input, period time.Duration) []int32 {
	at := []int32{in.replicas()}
	for range 40 {
		plan := Decide(in)
		if plan.Rescale == nil {
			break
		}
		plan = Settle(in, plan, nil)
		in.History = plan.History
		in.Now = in.Now.Add(period)
		in = sized(in, plan.Rescale.To)
		at = append(at, plan.Rescale.To)
	}
	return at
}

// The examples of the API documentation, and the defaults.
func TestDocumentedBehavior(t *testing.T) {
	free := rules(0, "Max", policies{percent(100, 15)})
	quick := rules(0, "Max", policies{pods(4, 15), percent(100, 15)})
	for _, row := range []struct {
		name     string
		up, down *autoscalingv2.HPAScalingRules
		from, to int32
		every    time.Duration
		want     []int32
	}{
		{"900 % a minute", rules(0, "Max", policies{percent(900, 60)}), free, 1, 1000, time.Minute,
			[]int32{1, 10, 100, 1000}},
		{"one Pod each ten minutes", rules(0, "Max", policies{pods(1, 600)}), free, 1, 4, 10 * time.Minute,
			[]int32{1, 2, 3, 4}},
		{"4 Pods or 10 % a minute, whichever is more", quick, rules(0, "Max", policies{pods(4, 60), percent(10, 60)}),
			80,
			32, time.Minute, []int32{80, 72, 64, 57, 51, 45, 40, 36, 32}},
		{"the lesser of the two", quick, rules(0, "Min", policies{pods(4, 60), percent(10, 60)}), 80, 70, time.Minute,
			[]int32{80, 76, 72, 70}},
		{"never down", quick, rules(0, "Disabled", policies{percent(100, 15)}), 80, 10, time.Minute, []int32{80}},
		{"never up", rules(0, "Disabled", policies{percent(100, 15)}), free, 8, 10, time.Minute, []int32{8}},
		{"the default: 4 Pods or twice as many", quick, free, 1, 30, 15 * time.Second, []int32{1, 5, 10, 20, 30}},
		{"the default: all down at once", quick, free, 80, 1, 15 * time.Second, []int32{80, 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := behaved(row.from, row.to, &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: row.up,
				ScaleDown: row.down})
			if got := walk(in, row.every); !slices.Equal(got, row.want) {
				t.Errorf("%v, want %v", got, row.want)
			}
		})
	}
	// Without a behavior at all.
	if got := walk(behaved(1, 30, nil), 15*time.Second); !slices.Equal(got, []int32{1, 4, 8, 16, 30}) {
		t.Errorf("without a behavior up: %v", got)
	}
	if got := walk(behaved(30, 1, nil), 15*time.Second); !slices.Equal(got, []int32{30, 1}) {
		t.Errorf("without a behavior down: %v", got)
	}
}

// A change counts until the end of its period, and no longer.
func TestPeriods(t *testing.T) {
	behavior := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(0, "Max", policies{pods(4, 60)}),
		ScaleDown: rules(0, "Max", policies{pods(4, 60)})}
	for _, row := range []struct {
		name   string
		by     int32
		ago    time.Duration
		wanted int32
		want   int32
	}{
		{"nothing yet, up", 0, time.Second, 100, 24},
		{"some of it, up", 3, 59 * time.Second, 100, 21},
		{"some of it a period ago, up", 3, time.Minute, 100, 24},
		{"more than it, up", 6, time.Second, 100, 20},
		{"down and up again", -3, time.Second, 100, 27},
		{"nothing yet, down", 0, time.Second, 1, 16},
		{"some of it, down", -3, 59 * time.Second, 1, 19},
		{"some of it a period ago, down", -3, time.Minute, 1, 16},
		{"more than it, down", -6, time.Second, 1, 20},
		{"up and down again", 3, time.Second, 1, 13},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := behaved(20, row.wanted, behavior)
			in.History.Changes = []Change{{row.by, now.Add(-row.ago)}}
			if got := desired(in, Decide(in)); got != row.want {
				t.Errorf("%d, want %d", got, row.want)
			}
		})
	}
}

// Safer recommendations within the window hold a recommendation back.
func TestStabilization(t *testing.T) {
	const (
		ready = "True ReadyForNewScale recommended size matches current size"
		down  = "True ScaleDownStabilized recent recommendations were higher than current one, applying the highest " +
			"recent recommendation"
		up = "True ScaleUpStabilized recent recommendations were lower than current one, applying the lowest recent " +
			"recommendation"
	)
	free := policies{percent(1000, 15)}
	windows := func(up, down int32) *autoscalingv2.HorizontalPodAutoscalerBehavior {
		return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(up, "Max", free),
			ScaleDown: rules(down, "Max", free)}
	}
	byFlag := windows(0, 0)
	byFlag.ScaleDown.StabilizationWindowSeconds = nil
	for _, row := range []struct {
		name     string
		behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
		before   int32
		ago      time.Duration
		wanted   int32
		want     int32 // of 10
		able     string
	}{
		{"five minutes by the flag", nil, 8, 5*time.Minute - time.Second, 2, 8, down},
		{"and no longer", nil, 8, 5 * time.Minute, 2, 2, ready},
		{"five minutes by the flag, with a behavior", byFlag, 8, 5*time.Minute - time.Second, 2, 8, down},
		{"and no longer, with a behavior", byFlag, 8, 5 * time.Minute, 2, 2, ready},
		{"its own window", windows(0, 60), 8, 59 * time.Second, 2, 8, down},
		{"beyond its own window", windows(0, 60), 8, time.Minute, 2, 2, ready},
		{"a higher one than there are keeps them", windows(0, 60), 12, time.Second, 2, 10, down},
		{"no window up", nil, 2, time.Second, 15, 15, ready},
		{"a window up", windows(60, 0), 12, 59 * time.Second, 15, 12, up},
		{"beyond a window up", windows(60, 0), 12, time.Minute, 15, 15, ready},
		{"a lower one than there are keeps them", windows(60, 0), 2, time.Second, 15, 10, up},
		{"a longer window", windows(0, 3600), 8, time.Hour - time.Second, 2, 8, down},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := behaved(10, row.wanted, row.behavior)
			in.Settings.DownscaleStabilization = 5 * time.Minute
			in.History.Recommendations = []Recommendation{{row.before, now.Add(-row.ago)}}
			plan := Decide(in)
			if got := desired(in, plan); got != row.want || said(plan.Status, "AbleToScale") != row.able {
				t.Errorf("%d, %s", got, said(plan.Status, "AbleToScale"))
			}
			last := plan.History.Recommendations
			if got := last[len(last)-1]; got != (Recommendation{row.wanted, now}) {
				t.Errorf("remembered %+v", got)
			}
		})
	}
}

// A controller without history scales up at once, and down no sooner than its window after its start.
func TestFreshHistory(t *testing.T) {
	in := behaved(10, 2, nil)
	in.Settings.DownscaleStabilization = 5 * time.Minute
	began := in.Now
	for {
		plan := Decide(in)
		if in.History = plan.History; plan.Rescale != nil {
			break
		}
		in.Now = in.Now.Add(15 * time.Second)
	}
	if waited := in.Now.Sub(began); waited != 5*time.Minute {
		t.Errorf("down after %v", waited)
	}
	in = behaved(10, 15, nil)
	in.Settings.DownscaleStabilization = 5 * time.Minute
	if got := desired(in, Decide(in)); got != 15 {
		t.Errorf("up to %d", got)
	}
}

// The condition names the limit that applied.
func TestLimits(t *testing.T) {
	slow := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(0, "Max", policies{pods(1, 60)}),
		ScaleDown: rules(0, "Max", policies{pods(1, 60)})}
	for _, row := range []struct {
		name           string
		behavior       *autoscalingv2.HorizontalPodAutoscalerBehavior
		wanted, want   int32 // of 10, between 5 and 25
		limited, which string
	}{
		{"none", nil, 12, 12, "False", "DesiredWithinRange the desired count is within the acceptable range"},
		{"the maximum itself", nil, 20, 20, "False",
			"DesiredWithinRange the desired count is within the acceptable range"},
		{"the pace", nil, 21, 20, "True",
			"ScaleUpLimit the desired replica count is increasing faster than the maximum scale rate"},
		{"the minimum", nil, 4, 5, "True",
			"TooFewReplicas the desired replica count is less than the minimum replica count"},
		{"its own pace up", slow, 12, 11, "True",
			"ScaleUpLimit the desired replica count is increasing faster than the maximum scale rate"},
		{"its own pace down", slow, 8, 9, "True",
			"ScaleDownLimit the desired replica count is decreasing faster than the maximum scale rate"},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := behaved(10, row.wanted, row.behavior)
			in.Autoscaler.Spec.MinReplicas, in.Autoscaler.Spec.MaxReplicas = ptr.To[int32](5), 25
			plan := Decide(in)
			if got := desired(in, plan); got != row.want || said(plan.Status, "ScalingLimited") != row.limited+" "+
				row.which {
				t.Errorf("%d, %s", got, said(plan.Status, "ScalingLimited"))
			}
		})
	}
	in := behaved(20, 30, nil)
	in.Autoscaler.Spec.MaxReplicas = 25
	if plan := Decide(in); desired(in, plan) != 25 || said(plan.Status, "ScalingLimited") !=
		"True TooManyReplicas the desired replica count is more than the maximum replica count" {
		t.Errorf("beyond the maximum: %s", said(plan.Status, "ScalingLimited"))
	}
}
