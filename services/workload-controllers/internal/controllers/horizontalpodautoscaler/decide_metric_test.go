package horizontalpodautoscaler

import (
	"errors"
	"slices"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// DEP-211: desired = ceil(current * observed / target), clamped, and no change within 10 % of the target.
func TestUtilization(t *testing.T) {
	for _, row := range []struct {
		name       string
		replicas   int
		used       float64 // of 100m each, where 50 are the target
		least, max int32
		want       int32
	}{
		{"at the target", 3, 50, 1, 10, 3},
		{"DEP-211 twice the target", 3, 100, 1, 10, 6},
		{"DEP-211 rounded up", 3, 60, 1, 10, 4},
		{"DEP-211 10 % above", 10, 55, 1, 20, 10},
		{"DEP-211 12 % above", 10, 56, 1, 20, 12},
		{"DEP-211 10 % below", 10, 45, 1, 20, 10},
		{"DEP-211 12 % below", 10, 44, 1, 20, 9},
		{"DEP-211 rounded up on the way down", 5, 30, 1, 10, 3},
		{"half", 4, 25, 1, 10, 2},
		{"DEP-210 idle: the minimum", 4, 0, 1, 10, 1},
		{"DEP-210 a higher minimum", 4, 0, 2, 10, 2},
		{"DEP-210 the maximum", 4, 100, 1, 5, 5},
		{"DEP-185 three at their request, of 3 to 10", 3, 100, 3, 10, 6},
		{"DEP-241 one at its request, of 1 to 3", 1, 100, 1, 3, 2},
		{"DEP-241 three idle ones, of 1 to 3", 3, 1, 1, 3, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(each(row.replicas, row.used)...)
			in.Autoscaler.Spec.MinReplicas, in.Autoscaler.Spec.MaxReplicas = &row.least, row.max
			plan := Decide(in)
			if got := desired(in, plan); got != row.want || plan.Status.DesiredReplicas != row.want {
				t.Errorf("%d of %d replicas, status %d, want %d: %s", got, row.replicas, plan.Status.DesiredReplicas,
					row.want, said(plan.Status, "ScalingActive"))
			}
			use := plan.Status.CurrentMetrics[0].Resource.Current
			if int32(row.used) != *use.AverageUtilization || use.AverageValue.MilliValue() != int64(row.used) {
				t.Errorf("shown as %+v", use)
			}
		})
	}
}

// An autoscaler may set the tolerance of each direction.
func TestTolerance(t *testing.T) {
	for _, row := range []struct {
		name     string
		up, down string
		used     float64
		want     int32
	}{
		{"up by the flag", "", "", 55, 10},
		{"up by none", "0", "", 51, 11},
		{"up by 30 %", "0.3", "", 65, 10},
		{"beyond it", "0.3", "", 66, 14},
		{"which is not for down", "0.3", "", 44, 9},
		{"down by none", "", "0", 45, 9},
		{"down by 30 %", "", "0.3", 35, 10},
		{"below it", "", "0.3", 34, 7},
		{"which is not for up", "", "0.3", 56, 12},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(each(10, row.used)...)
			in.Autoscaler.Spec.MaxReplicas = 20
			share := autoscalingv2.HPAScalingPolicy{Type: "Percent", Value: 100, PeriodSeconds: 15}
			rules := func(tolerance string) *autoscalingv2.HPAScalingRules {
				r := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](0),
					Policies: []autoscalingv2.HPAScalingPolicy{share}}
				if tolerance != "" {
					r.Tolerance = amount(tolerance)
				}
				return r
			}
			in.Autoscaler.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(row.up),
				ScaleDown: rules(row.down)}
			if got := desired(in, Decide(in)); got != row.want {
				t.Errorf("%d, want %d", got, row.want)
			}
		})
	}
}

// Pods without samples damp the change that the others ask for.
func TestPodsThatAreNotKnown(t *testing.T) {
	missing := func(in *Input, i int) { delete(in.Readings[0].Pods, in.Pods[i].Name) }
	for _, row := range []struct {
		name    string
		samples []float64
		change  func(*Input)
		want    int32
	}{
		{"all known", each(4, 100), func(*Input) {}, 8},
		{"one missing counts as idle on the way up", each(4, 100), func(in *Input) { missing(in, 0) }, 6},
		{"so much that nothing happens", each(4, 60), func(in *Input) { missing(in, 0) }, 4},
		{"one missing counts as fully used on the way down", each(4, 10), func(in *Input) { missing(in, 0) }, 3},
		{"so much that nothing happens", each(4, 40), func(in *Input) { missing(in, 0); missing(in, 1) }, 4},
		{"one that starts counts as idle on the way up", each(4, 100),
			func(in *Input) { unready(time.Minute)(in.Pods[0]) },
			6},
		{"and not at all on the way down", each(4, 10), func(in *Input) { unready(time.Minute)(in.Pods[0]) }, 1},
		{"a pending one counts as idle", each(4, 100), func(in *Input) { in.Pods[0].Status.Phase = "Pending" }, 6},
		{"one that ends counts not at all", each(4, 100), func(in *Input) {
			in.Pods[0].DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}, 6},
		{"one that has failed counts not at all, nor its request", each(4, 10), func(in *Input) {
			in.Pods[0].Status.Phase = "Failed"
			in.Pods[0].Spec.InitContainers[0].Resources.Requests = nil
		}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(row.samples...)
			row.change(&in)
			plan := Decide(in)
			if got := desired(in, plan); got != row.want {
				t.Errorf("%d, want %d: %s", got, row.want, said(plan.Status, "ScalingActive"))
			}
		})
	}
}

// A Pod's CPU counts once it reflects normal operation rather than startup.
func TestStarting(t *testing.T) {
	const window = 30 * time.Second
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	for _, row := range []struct {
		name           string
		started, since time.Duration // ago
		ready          bool
		sampled        time.Duration // ago
		starts         bool
	}{
		{"ready for long", time.Hour, time.Hour, true, 0, false},
		{"young and ready for a window", time.Minute, 40 * time.Second, true, 10 * time.Second, false},
		{"young and ready for less", time.Minute, 39 * time.Second, true, 10 * time.Second, true},
		{"young and not ready", time.Minute, time.Minute, false, 0, true},
		{"five minutes old less a second", 5*time.Minute - time.Second, 10 * time.Second, true, 0, true},
		{"five minutes old", 5 * time.Minute, 10 * time.Second, true, 0, false},
		{"older, never ready", 10 * time.Minute, 10*time.Minute - 29*time.Second, false, 0, true},
		{"older, was ready", 10 * time.Minute, 10*time.Minute - 30*time.Second, false, 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			is := corev1.ConditionFalse
			if row.ready {
				is = corev1.ConditionTrue
			}
			p := pod("p", func(p *corev1.Pod) {
				p.Status.StartTime = ptr.To(at(row.started))
				p.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: is,
					LastTransitionTime: at(row.since)}
			})
			in := input(1)
			d := &decision{Input: &in}
			if got := d.starts(p, Sample{At: now.Add(-row.sampled), Window: window}); got != row.starts {
				t.Errorf("starts: %t", got)
			}
		})
	}
	in := input(1)
	d := &decision{Input: &in}
	if !d.starts(pod("p", func(p *corev1.Pod) { p.Status.StartTime = nil }), Sample{At: now}) ||
		!d.starts(pod("p", func(p *corev1.Pod) { p.Status.Conditions = nil }), Sample{At: now}) {
		t.Error("a Pod of which no start is known does not start")
	}
}

// A Pod's request is the sum of its containers' requests, or its Pod-level request.
func TestRequests(t *testing.T) {
	with := func(name, request string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": *amount(request)}}}
	}
	p := pod("p", func(p *corev1.Pod) { p.Spec.InitContainers = append(p.Spec.InitContainers, with("second", "25m")) })
	whole := p.DeepCopy()
	whole.Spec.InitContainers = slices.Insert(whole.Spec.InitContainers, 0, with("", "1"))
	nothing := pod("p", func(p *corev1.Pod) { p.Spec.InitContainers = nil })
	for _, row := range []struct {
		name      string
		pod       *corev1.Pod
		resource  corev1.ResourceName
		container string
		want      float64
		err       string
	}{
		{"all", p, "cpu", "", 125, ""},
		{"one", p, "cpu", "second", 25, ""},
		{"what a Pod with its own leaves to its containers", whole, "memory", "main", 100 * (1 << 20) * 1000, ""},
		{"the Pod's own", whole, "cpu", "", 1000, ""},
		{"one of a Pod with its own", whole, "cpu", "second", 25, ""},
		{"none", p, "memory", "", 0, "missing request for memory in container second of Pod p"},
		{"nothing at all", nothing, "cpu", "", 0, "missing request for cpu in all containers of Pod p"},
		{"no such container", p, "cpu", "third", 0, "container third not found in Pod p"},
	} {
		got, err := requestOf(row.pod, row.resource, row.container)
		if got != row.want || (err == nil) != (row.err == "") || err != nil && err.Error() != row.err {
			t.Errorf("%s: %v, %v", row.name, got, err)
		}
	}
}

// Metrics that are not compared with requests.
func TestAmounts(t *testing.T) {
	name := autoscalingv2.MetricIdentifier{Name: "hits"}
	average := autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: amount("50m")}
	whole := autoscalingv2.MetricTarget{Type: "Value", Value: amount("100m")}
	object := autoscalingv2.CrossVersionObjectReference{Kind: "Service", Name: "web"}
	memory := autoscalingv2.MetricSpec{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "memory",
		Target: average}}
	container := autoscalingv2.MetricSpec{Type: "ContainerResource",
		ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: "cpu", Container: "main",
			Target: cpu(50).Resource.Target}}
	pods := autoscalingv2.MetricSpec{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: name, Target: average}}
	of := func(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{Metric: name,
			DescribedObject: object, Target: target}}
	}
	outside := func(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: "External", External: &autoscalingv2.ExternalMetricSource{Metric: name,
			Target: target}}
	}
	for _, row := range []struct {
		name    string
		metric  autoscalingv2.MetricSpec
		samples []float64
		value   float64
		want    int32
		reason  string
	}{
		{"memory twice", memory, each(3, 100), 0, 6, "memory resource above target"},
		{"memory half", memory, each(4, 25), 0, 2, "All metrics below target"},
		{"memory within 10 %", memory, each(3, 55), 0, 3, ""},
		{"a container", container, each(3, 100), 0, 6, "cpu resource utilization (percentage of request) above target"},
		{"pods twice", pods, each(3, 100), 0, 6, "pods metric hits above target"},
		{"an object of twice as much", of(whole), each(3, 0), 200, 6, "Service metric hits above target"},
		{"an object at its target", of(whole), each(3, 0), 110, 3, ""},
		{"an object of half as much", of(whole), each(4, 0), 50, 2, "All metrics below target"},
		{"an object for each replica", of(average), each(2, 0), 200, 4, "Service metric hits above target"},
		{"external, twice", outside(whole), each(3, 0), 200, 6, "external metric hits(nil) above target"},
		{"external, for each replica", outside(average), each(2, 0), 160, 4, "external metric hits(nil) above target"},
		{"external, within 10 % for each replica", outside(average), each(2, 0), 110, 2, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(row.samples...)
			in.Autoscaler.Spec.Metrics = []autoscalingv2.MetricSpec{row.metric}
			in.Readings[0].Value = row.value
			plan := Decide(in)
			got, reason := desired(in, plan), ""
			if plan.Rescale != nil {
				reason = plan.Rescale.Reason
			}
			if got != row.want || reason != row.reason {
				t.Errorf("%d because %q, want %d because %q", got, reason, row.want, row.reason)
			}
			status := plan.Status.CurrentMetrics[0]
			if status.Type != row.metric.Type || (status.Object == nil) != (row.metric.Object == nil) ||
				(status.External == nil) != (row.metric.External == nil) ||
				(status.Pods == nil) != (row.metric.Pods == nil) ||
				(status.ContainerResource == nil) != (row.metric.ContainerResource == nil) {
				t.Errorf("status %+v", status)
			}
		})
	}
}

// The metric that asks for most replicas decides. If one metric is unknown, the others can only add replicas.
func TestSeveralMetrics(t *testing.T) {
	unknown := Reading{Err: errors.New("away")}
	for _, row := range []struct {
		name   string
		used   float64
		second Reading
		want   int32
		active string
	}{
		{"both", 60, Reading{Value: 250}, 5, "True ValidMetricFound the HPA was able to successfully calculate a " +
			"replica count from external metric jobs(nil)"},
		{"the first alone, up", 100, unknown, 6, "True ValidMetricFound the HPA was able to successfully calculate a " +
			"replica count from cpu resource utilization (percentage of request)"},
		{"the first alone, down", 10, unknown, 3, "False FailedGetExternalMetric the HPA was unable to compute the " +
			"replica count: failed to get jobs external metric value: away"},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(each(3, row.used)...)
			in.Autoscaler.Spec.Metrics = append(in.Autoscaler.Spec.Metrics, autoscalingv2.MetricSpec{Type: "External",
				External: &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "jobs"},
					Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: amount("50m")}}})
			in.Readings = append(in.Readings, row.second)
			plan := Decide(in)
			if got := desired(in, plan); got != row.want || said(plan.Status, "ScalingActive") != row.active {
				t.Errorf("%d, %s", got, said(plan.Status, "ScalingActive"))
			}
			if len(plan.Status.CurrentMetrics) != 2 || plan.Status.CurrentMetrics[1].Type != "External" ||
				(plan.Status.CurrentMetrics[1].External == nil) != (row.second.Err != nil) {
				t.Errorf("status %+v", plan.Status.CurrentMetrics)
			}
		})
	}
}
