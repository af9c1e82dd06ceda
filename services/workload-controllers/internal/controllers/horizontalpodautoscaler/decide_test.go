package horizontalpodautoscaler

import (
	"errors"
	"slices"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"keelson.dev/kit/events"
)

// told returns the events of a plan as text.
func told(plan Plan) []string {
	var all []string
	for _, e := range plan.Events {
		all = append(all, e.Type+" "+e.Reason+" "+e.Message)
	}
	return all
}

// DEP-212: missing information changes nothing, and the conditions and events say why.
func TestWhatIsInTheWay(t *testing.T) {
	const able = "True SucceededGetScale the HPA controller was able to get the target's current scale"
	away := errors.New("away")
	for _, row := range []struct {
		name         string
		change       func(*Input)
		able, active string
		events       []string
	}{
		{"no target", func(in *Input) { in.Target = Target{Err: away} },
			"False FailedGetScale the HPA controller was unable to get the target's current scale: away", "",
			[]string{"Warning FailedGetScale away"}},
		{"no selector", func(in *Input) {
			in.Target.Scale.Status.Selector, in.Target.SelectorErr = "", errNoSelector
		}, able, "False InvalidSelector the HPA target's scale is missing a selector",
			[]string{"Warning SelectorRequired selector is required",
				"Warning FailedComputeMetricsReplicas selector is required"}},
		{"no readable selector", func(in *Input) { in.Target.SelectorErr = away }, able,
			"False InvalidSelector couldn't convert selector into a corresponding internal selector object: away",
			[]string{
				"Warning InvalidSelector couldn't convert selector into a corresponding internal selector object: away",
				"Warning FailedComputeMetricsReplicas couldn't convert selector into a corresponding internal " +
					"selector object: away"}},
		{"two for the same Pods", func(in *Input) { in.Rivals = []string{"ns/other", "ns/web"} }, able,
			"False AmbiguousSelector pods by selector app=web are controlled by multiple HPAs: [ns/other ns/web]",
			[]string{"Warning AmbiguousSelector pods by selector app=web are controlled by multiple HPAs: [ns/other " +
				"ns/web]", "Warning FailedComputeMetricsReplicas pods by selector app=web are controlled by multiple " +
				"HPAs: [ns/other ns/web]"}},
		{"DEP-212 no metrics", func(in *Input) { in.Readings[0] = Reading{Err: away} }, able,
			"False FailedGetResourceMetric the HPA was unable to compute the replica count: failed to get cpu " +
				"utilization: away",
			[]string{"Warning FailedGetResourceMetric failed to get cpu utilization: away",
				"Warning FailedComputeMetricsReplicas invalid metrics (1 invalid out of 1), first error is: " +
					"failed to get cpu utilization: away"}},
		{"no Pods", func(in *Input) { in.Pods = nil }, able,
			"False FailedGetResourceMetric the HPA was unable to compute the replica count: failed to get cpu " +
				"utilization: no pods returned by selector while calculating replica count", nil},
		{"no request", func(in *Input) { in.Pods[1].Spec.InitContainers[0].Resources.Requests = nil }, able,
			"False FailedGetResourceMetric the HPA was unable to compute the replica count: failed to get cpu " +
				"utilization: missing request for cpu in container main of Pod web-01", nil},
		{"no known Pods", func(in *Input) { in.Readings[0].Pods = nil }, able,
			"False FailedGetResourceMetric the HPA was unable to compute the replica count: failed to get cpu " +
				"utilization: did not receive metrics for targeted pods (pods might be unready)", nil},
		{"no such metric", func(in *Input) {
			in.Autoscaler.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: "Moon"}}
		}, able,
			"False InvalidMetricSourceType the HPA was unable to compute the replica count: unknown metric source " +
				`type "Moon"`, nil},
		{"nothing to scale", func(in *Input) { *in = sized(*in, 0) }, able,
			"False ScalingDisabled scaling is disabled since the replica count of the target is zero", []string{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(100, 100)
			row.change(&in)
			plan := Decide(in)
			if plan.Rescale != nil || said(plan.Status, "AbleToScale") != row.able ||
				said(plan.Status, "ScalingActive") != row.active {
				t.Errorf("%+v\n%s\n%s", plan.Rescale, said(plan.Status, "AbleToScale"),
					said(plan.Status, "ScalingActive"))
			}
			if got := told(plan); row.events != nil && !slices.Equal(got, row.events) {
				t.Errorf("events %q", got)
			}
			if metrics := plan.Status.CurrentMetrics; len(metrics) > 0 && metrics[0].Resource != nil {
				t.Errorf("DEP-212: a value is shown: %+v", metrics)
			}
			// The next pass finds the same: it emits no event and writes nothing.
			in.Autoscaler.Status, in.History, in.Now = plan.Status, plan.History, now.Add(time.Minute)
			again := Decide(in)
			if len(again.Events) != 0 || !sayTheSame(plan.Status.Conditions, again.Status.Conditions) ||
				!plan.Status.Conditions[0].LastTransitionTime.Equal(&again.Status.Conditions[0].LastTransitionTime) {
				t.Errorf("told again: %q", told(again))
			}
		})
	}
}

// A target outside its bounds is brought back into them whatever the metrics say.
func TestOutsideOfTheBounds(t *testing.T) {
	for _, row := range []struct {
		replicas, want int32
		reason         string
	}{
		{11, 10, "Current number of replicas above Spec.MaxReplicas"},
		{2, 3, "Current number of replicas below Spec.MinReplicas"},
	} {
		in := sized(input(), row.replicas)
		*in.Autoscaler.Spec.MinReplicas = 3
		in.Settings.DownscaleStabilization = time.Hour
		in.Readings = nil
		if in.NeedsMetrics() {
			t.Errorf("%d: metrics are read", row.replicas)
		}
		plan := Decide(in)
		if plan.Rescale == nil || *plan.Rescale != (Rescale{row.replicas, row.want, row.reason}) {
			t.Errorf("%d: %+v", row.replicas, plan.Rescale)
		}
	}
	for _, replicas := range []int{3, 10} {
		in := sized(input(), replicas)
		*in.Autoscaler.Spec.MinReplicas = 3
		if !in.NeedsMetrics() {
			t.Errorf("%d: no metrics are read", replicas)
		}
	}
}

// The outcome of a rescale, whether it succeeds or fails.
func TestSettle(t *testing.T) {
	in := input(100, 100, 100)
	in.Autoscaler.Status.DesiredReplicas = 3
	plan := Decide(in)
	done := Settle(in, plan, nil)
	if said(done.Status, "AbleToScale") !=
		"True SucceededRescale the HPA controller was able to update the target scale to 6" ||
		done.Status.LastScaleTime == nil || !done.Status.LastScaleTime.Time.Equal(now) ||
		done.Status.CurrentReplicas != 3 || done.Status.DesiredReplicas != 6 ||
		!slices.Equal(done.History.Changes, []Change{{3, now}}) || *done.Status.ObservedGeneration != 1 {
		t.Errorf("%+v, %+v", done.Status, done.History)
	}
	if got := told(done); !slices.Equal(got, []string{"Normal SuccessfulRescale New size: 6; reason: cpu resource " +
		"utilization (percentage of request) above target"}) {
		t.Errorf("events %q", got)
	}
	failed := Settle(in, plan, errors.New("refused"))
	if said(failed.Status, "AbleToScale") !=
		"False FailedUpdateScale the HPA controller was unable to update the target scale: refused" ||
		failed.Status.LastScaleTime != nil || failed.Status.DesiredReplicas != 3 || len(failed.History.Changes) != 0 {
		t.Errorf("%+v, %+v", failed.Status, failed.History)
	}
	want := events.Warning("FailedRescale", "New size: 6; reason: cpu resource utilization (percentage of request) "+
		"above target; error: refused")
	if !slices.Equal(failed.Events, []events.Event{want}) {
		t.Errorf("events %+v", failed.Events)
	}
}
