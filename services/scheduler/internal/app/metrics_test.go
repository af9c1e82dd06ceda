package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/introspect"
	"keelson.dev/kit/metricspage"
	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
)

// shown is what a registry shows of a prefix, one line for each metric that is more than 0, with the sum in whole
// seconds of a histogram after its count.
func shown(t *testing.T, registry prometheus.Gatherer, prefixes ...string) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(family.GetName(), p) }) {
			continue
		}
		for _, metric := range family.GetMetric() {
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			line := strings.TrimPrefix(family.GetName(), "scheduler_")
			for _, label := range metric.GetLabel() {
				line += " " + label.GetName() + "=" + label.GetValue()
			}
			if h := metric.GetHistogram(); h != nil {
				value = float64(h.GetSampleCount())
				line += fmt.Sprintf(" %v sum %d", value, int(h.GetSampleSum()))
			} else {
				line += fmt.Sprint(" ", value)
			}
			if value > 0 {
				out = append(out, line)
			}
		}
	}
	return out
}

// What becomes of Pods stands under the names and labels of kube-scheduler's metrics: a Pod that is bound, one that is
// bound at its third try because its binding was refused and nothing fits, and one that takes the room of another.
func TestMetrics(t *testing.T) {
	c := Config{Environment: daemon.NewEnvironment(name), Scheduler: config.Default(), Seed: 1}
	playWith(t, c, nil, func(s *stage) {
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			got := shown(t, c.Metrics, "scheduler_schedule_attempts", "scheduler_pod_scheduling",
				"scheduler_scheduling_attempt", "scheduler_preemption_")
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		s.mu.Lock()
		s.refuse = errors.New("no")
		s.mu.Unlock()
		s.node("n", "4")
		s.pod("p", "3")
		s.wait(30 * time.Second)
		expect("bound at the second try",
			"pod_scheduling_attempts 1 sum 2",
			"pod_scheduling_sli_duration_seconds attempts=2 1 sum 1",
			"schedule_attempts_total profile=default-scheduler result=error 1",
			"schedule_attempts_total profile=default-scheduler result=scheduled 1",
			"scheduling_attempt_duration_seconds profile=default-scheduler result=error 1 sum 0",
			"scheduling_attempt_duration_seconds profile=default-scheduler result=scheduled 1 sum 0")
		urgent := newPod("urgent", "3")
		urgent.Spec.Priority = new(int32)
		*urgent.Spec.Priority = 7
		s.mu.Lock()
		s.store(urgent)
		s.mu.Unlock()
		s.wait(time.Second)
		s.end("p")
		s.wait(time.Minute)
		expect("bound in the room of another",
			"pod_scheduling_attempts 2 sum 4",
			"pod_scheduling_sli_duration_seconds attempts=2 2 sum 2",
			"preemption_attempts_total 1",
			"preemption_victims 1 sum 1",
			"preemption_victims_total 1",
			"schedule_attempts_total profile=default-scheduler result=error 1",
			"schedule_attempts_total profile=default-scheduler result=scheduled 2",
			"schedule_attempts_total profile=default-scheduler result=unschedulable 1",
			"scheduling_attempt_duration_seconds profile=default-scheduler result=error 1 sum 0",
			"scheduling_attempt_duration_seconds profile=default-scheduler result=scheduled 2 sum 0",
			"scheduling_attempt_duration_seconds profile=default-scheduler result=unschedulable 1 sum 0")
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			s.loop.observe(ctx, introspect.NewState("scheduler", "test"))
			close(done)
		}()
		s.wait(3 * depthPeriod)
		cancel()
		<-done
		want := []string{"queue_incoming_pods_total event=BackoffComplete queue=active 1",
			"queue_incoming_pods_total event=NodeFits queue=active 1",
			"queue_incoming_pods_total event=PodAdd queue=active 2",
			"queue_incoming_pods_total event=ScheduleAttemptFailure queue=backoff 1",
			"queue_incoming_pods_total event=ScheduleAttemptFailure queue=unschedulable 1"}
		if got := shown(t, c.Metrics, "scheduler_queue_incoming"); !slices.Equal(got, want) {
			t.Errorf("moves:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		families, err := c.Metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		wrong, err := metricspage.Compare("../../../../docs/reference/metrics.md", "The scheduler's `/metrics`",
			families)
		if err != nil || len(wrong) > 0 {
			t.Errorf("/metrics and docs/reference/metrics.md: %v\n%s", err, strings.Join(wrong, "\n"))
		}
	})
}

func TestAttemptsLabel(t *testing.T) {
	for n, want := range map[int]string{1: "1", 14: "14", 15: "15+", 99: "15+"} {
		if got := attemptsLabel(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// BenchmarkMetrics is what the loop spends on counting a Pod that is placed and bound.
func BenchmarkMetrics(b *testing.B) {
	m := newMetrics(prometheus.NewRegistry(), config.Default().Profiles)
	v := cycle.Verdict{Pod: &corev1.Pod{}, Node: "n"}
	o := bind.Outcome{Binding: bind.Binding{Pod: v.Pod, Node: v.Node, Try: bind.Try{Attempt: 1}}}
	b.ReportAllocs()
	for b.Loop() {
		m.decided(&v, time.Microsecond)
		m.bound(o, time.Time{})
	}
}
