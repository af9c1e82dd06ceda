package horizontalpodautoscaler

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
)

// anyRules returns random valid rules of one direction.
func anyRules(r *rand.Rand) *autoscalingv2.HPAScalingRules {
	choice := []autoscalingv2.ScalingPolicySelect{"Max", "Min", "Disabled"}[r.IntN(3)]
	made := &autoscalingv2.HPAScalingRules{SelectPolicy: &choice}
	if r.IntN(2) == 0 {
		made.StabilizationWindowSeconds = ptr.To(r.Int32N(400))
	}
	for range 1 + r.IntN(3) {
		made.Policies = append(made.Policies, autoscalingv2.HPAScalingPolicy{Value: 1 + r.Int32N(150),
			Type:          []autoscalingv2.HPAScalingPolicyType{"Pods", "Percent"}[r.IntN(2)],
			PeriodSeconds: 1 + r.Int32N(300)})
	}
	return made
}

// scaled is one event of a random history.
type scaled struct {
	at       time.Time
	from, to int32
	wanted   int32
}

// TestRandomHistories applies random loads: the replicas never leave the bounds, never change faster than the chosen
// policy allows within its period, and never fall below what was asked for within the window.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := behaved(1+r.Int32N(50), 0, nil)
		least := 1 + r.Int32N(20)
		in.Autoscaler.Spec.MinReplicas, in.Autoscaler.Spec.MaxReplicas = &least, least+r.Int32N(80)
		in = sized(in, min(max(in.replicas(), least), in.most()))
		in.Settings.DownscaleStabilization = time.Duration(r.IntN(400)) * time.Second
		if r.IntN(4) > 0 {
			in.Autoscaler.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: anyRules(r),
				ScaleDown: anyRules(r)}
		}
		var past []scaled
		for range 80 {
			in.Now = in.Now.Add(time.Duration(1+r.IntN(30)) * time.Second)
			wanted := r.Int32N(200)
			in.Readings[0].Value = float64(wanted) * 1000
			before := History{append([]Recommendation(nil), in.History.Recommendations...),
				append([]Change(nil), in.History.Changes...)}
			plan := Decide(in)
			if len(in.History.Recommendations) > 0 && !reflect.DeepEqual(before.Recommendations,
				in.History.Recommendations) {
				t.Fatalf("seed %d: the input was changed", seed)
			}
			to := desired(in, plan)
			past = append(past, scaled{in.Now, in.replicas(), to, wanted})
			if to < least || to > in.most() {
				t.Fatalf("seed %d: %d replicas of %d to %d", seed, to, least, in.most())
			}
			checkPace(t, seed, in, past)
			if plan.Rescale != nil {
				plan = Settle(in, plan, nil)
			}
			in.History = plan.History
			in = sized(in, to)
		}
	}
}

func checkPace(t *testing.T, seed uint64, in Input, past []scaled) {
	t.Helper()
	last := past[len(past)-1]
	behavior := in.Autoscaler.Spec.Behavior
	window := in.Settings.DownscaleStabilization
	if behavior != nil && behavior.ScaleDown.StabilizationWindowSeconds != nil {
		window = time.Duration(*behavior.ScaleDown.StabilizationWindowSeconds) * time.Second
	}
	if last.to < last.from {
		for _, p := range past {
			if p.at.After(last.at.Add(-window)) && last.to < min(p.wanted, in.most(), last.from) {
				t.Fatalf("seed %d: down to %d though %d were wanted %v ago", seed, last.to, p.wanted,
					last.at.Sub(p.at))
			}
		}
	}
	if behavior == nil {
		if last.to > max(2*last.from, 4) {
			t.Fatalf("seed %d: from %d to %d at once", seed, last.from, last.to)
		}
		return
	}
	rules, up := behavior.ScaleUp, last.to > last.from
	if last.to < last.from {
		rules = behavior.ScaleDown
	}
	if last.to != last.from && !within(rules, up, past) {
		t.Fatalf("seed %d: from %d to %d, beyond %+v", seed, last.from, last.to, rules)
	}
}

// within reports whether the last change obeys the policies: one of them under Max, all of them under Min.
func within(rules *autoscalingv2.HPAScalingRules, up bool, past []scaled) bool {
	last := past[len(past)-1]
	kept := 0
	for _, policy := range rules.Policies {
		start := float64(last.from)
		for _, p := range past[:len(past)-1] {
			if p.at.After(last.at.Add(-time.Duration(policy.PeriodSeconds) * time.Second)) {
				start -= float64(p.to - p.from)
			}
		}
		step := float64(policy.Value)
		if policy.Type == "Percent" {
			step = start * step / 100
		}
		// Fractions of a Pod are rounded up.
		if up && float64(last.to) < start+step+1 || !up && float64(last.to) > start-step-1 {
			kept++
		}
	}
	switch *rules.SelectPolicy {
	case "Max":
		return kept > 0
	case "Min":
		return kept == len(rules.Policies)
	}
	return false
}

// TestRandomSamples: whatever the samples, the number of replicas stays within the bounds, and unknown Pods never
// make a change larger than if they were at the target.
func TestRandomSamples(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		samples := make([]float64, 1+r.IntN(12))
		for i := range samples {
			samples[i] = float64(r.IntN(200))
		}
		in := input(samples...)
		for i, p := range in.Pods {
			switch r.IntN(6) {
			case 0:
				delete(in.Readings[0].Pods, p.Name)
			case 1:
				unready(time.Minute)(in.Pods[i])
			case 2:
				p.Status.Phase = "Pending"
			}
		}
		in.Autoscaler.Spec.MaxReplicas = 20
		plan := Decide(in)
		to := desired(in, plan)
		if to < 1 || to > 20 {
			t.Fatalf("seed %d: %d replicas", seed, to)
		}
		known := plan.Status.CurrentMetrics[0].Resource
		if known == nil {
			continue
		}
		use := *known.Current.AverageUtilization
		if use < 50 && to > in.replicas() || use > 50 && to < in.replicas() {
			t.Fatalf("seed %d: from %d to %d at %d %%", seed, in.replicas(), to, use)
		}
	}
}
