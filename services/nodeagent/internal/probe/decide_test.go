package probe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// POD-138, POD-139, POD-142, POD-149
func TestWindow(t *testing.T) {
	probe := &corev1.Probe{SuccessThreshold: 2, FailureThreshold: 3}
	for _, row := range []struct {
		name     string
		kind     Kind
		outcomes string
		want     Outcome
	}{
		{"readiness begins as failure", Readiness, "", Failure},
		{"readiness needs its successes in a row", Readiness, "SFSFS", Failure},
		{"ready", Readiness, "SFSS", Success},
		{"liveness begins as success", Liveness, "", Success},
		{"two failures are not enough", Liveness, "FFSFF", Success},
		{"three failures in a row", Liveness, "SFFF", Failure},
		{"unknown counts as nothing", Liveness, "FUFUUF", Failure},
		{"unknown alone decides nothing", Liveness, "UUUUUU", Success},
		{"startup begins undecided", Startup, "FF", Unknown},
		{"started", Startup, "FFSS", Success},
		{"startup failed", Startup, "FFF", Failure},
	} {
		w := initial(row.kind)
		for _, outcome := range row.outcomes {
			w = w.observe(map[rune]Outcome{'S': Success, 'F': Failure, 'U': Unknown}[outcome], probe)
		}
		if w.state != row.want {
			t.Errorf("%s: %s, want %s", row.name, w.state, row.want)
		}
	}
}

// POD-138, POD-139: the state changes only after as many equal outcomes in a row as the threshold says, not
// counting unknown ones.
func TestWindowProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		probe := &corev1.Probe{SuccessThreshold: rapid.Int32Range(0, 4).Draw(t, "success"),
			FailureThreshold: rapid.Int32Range(0, 4).Draw(t, "failure")}
		w := initial(rapid.SampledFrom([]Kind{Startup, Liveness, Readiness}).Draw(t, "kind"))
		var seen []Outcome
		for _, outcome := range rapid.SliceOf(rapid.SampledFrom([]Outcome{Success, Failure, Unknown})).Draw(t,
			"outcomes") {
			before := w
			w = w.observe(outcome, probe)
			if outcome == Unknown {
				if w != before {
					t.Fatal("unknown counted")
				}
				continue
			}
			seen = append(seen, outcome)
			threshold := map[Outcome]int32{Success: max(probe.SuccessThreshold, 1), Failure: max(probe.FailureThreshold,
				1)}[outcome]
			run := int32(0)
			for i := len(seen) - 1; i >= 0 && seen[i] == outcome; i-- {
				run++
			}
			if run >= threshold && w.state != outcome {
				t.Fatalf("%d times %s, still %s", run, outcome, w.state)
			}
			if run < threshold && w.state != before.state {
				t.Fatalf("only %d times %s, yet %s", run, outcome, w.state)
			}
		}
	})
}

// POD-140, POD-142, POD-143, POD-239, POD-240
func TestResultOf(t *testing.T) {
	probe := &corev1.Probe{TerminationGracePeriodSeconds: ptr.To[int64](7)}
	all := &corev1.Container{Name: "c", StartupProbe: probe, LivenessProbe: probe, ReadinessProbe: probe}
	for _, row := range []struct {
		name           string
		container      *corev1.Container
		states         map[Kind]Outcome
		started, ready bool
		kill           Kind
	}{
		{"no probes", &corev1.Container{}, nil, true, true, ""},
		{"not started", all, map[Kind]Outcome{Startup: Unknown, Liveness: Success, Readiness: Success}, false, false,
			""},
		{"started, not ready", all, map[Kind]Outcome{Startup: Success, Liveness: Success, Readiness: Failure}, true,
			false, ""},
		{"ready", all, map[Kind]Outcome{Startup: Success, Liveness: Success, Readiness: Success}, true, true, ""},
		{"liveness failed", all, map[Kind]Outcome{Startup: Success, Liveness: Failure, Readiness: Success}, true, true,
			Liveness},
		{"startup failed", all, map[Kind]Outcome{Startup: Failure, Liveness: Success, Readiness: Failure}, false, false,
			Startup},
		{"only startup, passed", &corev1.Container{StartupProbe: probe}, map[Kind]Outcome{Startup: Success}, true, true,
			""},
		{"only startup, undecided", &corev1.Container{StartupProbe: probe}, map[Kind]Outcome{Startup: Unknown}, false,
			false, ""},
	} {
		got := resultOf(row.container, row.states)
		if got.Started != row.started || got.Ready != row.ready || (got.Kill != nil) != (row.kill != "") {
			t.Errorf("%s: %+v", row.name, got)
			continue
		}
		if got.Kill != nil && (got.Kill.Kind != row.kill || *got.Kill.GracePeriod != 7) {
			t.Errorf("%s: kill %+v", row.name, got.Kill)
		}
	}
	if got := resultOf(all, map[Kind]Outcome{Startup: Success,
		Liveness: Failure}).Kill.Message; got != "Container c failed liveness probe" {
		t.Errorf("message %q", got)
	}
}

// POD-142, POD-148
func TestFirstAt(t *testing.T) {
	started := time.Unix(1000, 0)
	probe := &corev1.Probe{InitialDelaySeconds: 5}
	if Period(probe) != 10*time.Second || Timeout(probe) != time.Second {
		t.Errorf("defaults %v, %v", Period(probe), Timeout(probe))
	}
	if got := firstAt(probe, started, started, "x"); !got.Equal(started.Add(5 * time.Second)) {
		t.Errorf("at the start: %v", got)
	}
	now, seen := started.Add(time.Hour), map[time.Time]bool{}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		got := firstAt(probe, started, now, id)
		if got.Before(now) || got.After(now.Add(10*time.Second)) {
			t.Errorf("later: %v", got)
		}
		seen[got] = true
	}
	if len(seen) < 4 {
		t.Errorf("not spread: %v", seen)
	}
}
