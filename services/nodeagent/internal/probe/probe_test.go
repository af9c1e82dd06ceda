package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/services/nodeagent/internal/runtime"
)

// script answers exec diagnostics: what each command (startup, liveness, readiness) returns now.
type script struct {
	mu      sync.Mutex
	exit    map[string]int32
	err     map[string]error
	runs    map[string][]time.Duration
	begin   time.Time
	changes int
	failed  []string
}

func (s *script) ExecSync(_ context.Context, _ string, command []string, _ time.Duration) (runtime.ExecResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[command[0]] = append(s.runs[command[0]], time.Since(s.begin))
	return runtime.ExecResult{Stdout: []byte("output\n"), ExitCode: s.exit[command[0]]}, s.err[command[0]]
}

func (s *script) set(command string, exit int32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exit[command], s.err[command] = exit, err
}

func (s *script) times(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.runs[command])
}

// play runs a test in a bubble of its own time.
func play(t *testing.T, test func(t *testing.T, s *script, p *Prober)) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{exit: map[string]int32{}, err: map[string]error{}, runs: map[string][]time.Duration{},
			begin: time.Now()}
		p := New(Config{
			Executor: s,
			Changed:  func(types.UID) { s.mu.Lock(); s.changes++; s.mu.Unlock() },
			Tell: func(_ Target, reason, message string) {
				s.mu.Lock()
				s.failed = append(s.failed, message)
				s.mu.Unlock()
				if reason != "Unhealthy" {
					t.Errorf("the reason is %s", reason)
				}
			},
		})
		defer p.Close()
		test(t, s, p)
	})
}

func command(name string, change func(*corev1.Probe)) *corev1.Probe {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{name}}},
		PeriodSeconds: 10, FailureThreshold: 3, SuccessThreshold: 1}
	if change != nil {
		change(probe)
	}
	return probe
}

func target(container *corev1.Container, change func(*Target)) Target {
	out := Target{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, Container: container, ContainerID: "c1",
		StartedAt: time.Now()}
	if change != nil {
		change(&out)
	}
	return out
}

func result(t *testing.T, p *Prober, id string) Result {
	t.Helper()
	synctest.Wait()
	got, ok := p.Result(id)
	if !ok {
		t.Fatalf("%s is not probed", id)
	}
	return got
}

// POD-132, POD-134, POD-142, POD-144: a Pod gets no traffic before its first success, and none again after it
// fails.
func TestReadiness(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		container := &corev1.Container{Name: "c", ReadinessProbe: command("ready",
			func(p *corev1.Probe) { p.InitialDelaySeconds = 5 })}
		p.Sync("u", []Target{target(container, nil)})
		pass(4 * time.Second)
		if got := result(t, p, "c1"); got.Ready || !got.Started {
			t.Errorf("before the delay: %+v", got)
		}
		pass(time.Second)
		if got := result(t, p, "c1"); !got.Ready {
			t.Errorf("after the first success: %+v", got)
		}
		s.set("ready", 1, nil)
		pass(20 * time.Second)
		if got := result(t, p, "c1"); !got.Ready {
			t.Errorf("after two failures: %+v", got)
		}
		pass(10 * time.Second)
		if got := result(t, p, "c1"); got.Ready || got.Kill != nil {
			t.Errorf("after three failures: %+v", got)
		}
		if want := "[5s 15s 25s 35s]"; s.times("ready") != want {
			t.Errorf("ran at %s, want %s", s.times("ready"), want)
		}
		if s.changes != 2 || len(s.failed) != 3 || s.failed[0] != "Readiness probe failed: output" {
			t.Errorf("%d changes, messages %q", s.changes, s.failed)
		}
	})
}

// POD-145: a live container that is not ready is left alone.
func TestAliveAndNotReady(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		s.set("ready", 1, nil)
		p.Sync("u", []Target{target(&corev1.Container{Name: "c", LivenessProbe: command("live", nil),
			ReadinessProbe: command("ready", nil)}, nil)})
		pass(time.Hour)
		if got := result(t, p, "c1"); got.Ready || !got.Started || got.Kill != nil || s.times("live") == "[]" {
			t.Errorf("got %+v", got)
		}
	})
}

// POD-140, POD-147: a liveness failure is final for the instance; the next instance starts without it.
func TestLiveness(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		container := &corev1.Container{Name: "c", LivenessProbe: command("live", nil)}
		p.Sync("u", []Target{target(container, nil)})
		s.set("live", 1, nil)
		pass(20 * time.Second)
		if got := result(t, p, "c1"); got.Kill == nil || got.Kill.Kind != Liveness {
			t.Fatalf("got %+v", got)
		}
		s.set("live", 0, nil)
		pass(time.Minute)
		if got := result(t, p, "c1"); got.Kill == nil || s.times("live") != "[0s 10s 20s]" {
			t.Errorf("got %+v, ran at %s", got, s.times("live"))
		}
		p.Sync("u", []Target{target(container, func(t *Target) { t.ContainerID = "c2" })})
		if got := result(t, p, "c2"); got.Kill != nil {
			t.Errorf("the next instance: %+v", got)
		}
		if _, ok := p.Result("c1"); ok {
			t.Error("the old instance is still probed")
		}
	})
}

// POD-143, POD-149, POD-240: other probes do not run before the startup probe succeeds.
func TestStartupHoldsTheOthersBack(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		container := &corev1.Container{Name: "c", LivenessProbe: command("live", nil), ReadinessProbe: command("ready",
			nil),
			StartupProbe: command("startup", func(p *corev1.Probe) { p.FailureThreshold = 30 })}
		s.set("startup", 1, nil)
		s.set("live", 1, nil)
		p.Sync("u", []Target{target(container, nil)})
		pass(95 * time.Second)
		if got := result(t, p, "c1"); got.Started || got.Ready || got.Kill != nil || s.times("live") != "[]" ||
			s.times("ready") != "[]" {
			t.Errorf("got %+v, live %s, ready %s", got, s.times("live"), s.times("ready"))
		}
		s.set("startup", 0, nil)
		s.set("live", 0, nil)
		pass(20 * time.Second)
		if got := result(t, p, "c1"); !got.Started || !got.Ready || got.Kill != nil {
			t.Errorf("got %+v", got)
		}
		if startup := s.times("startup"); !strings.HasSuffix(startup, " 1m30s 1m40s]") {
			t.Errorf("startup went on: %s", startup)
		}
	})
}

// POD-105, POD-143: a failed startup probe kills.
func TestStartupFails(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		s.set("startup", 1, nil)
		p.Sync("u", []Target{target(&corev1.Container{Name: "c", StartupProbe: command("startup", nil)}, nil)})
		pass(20 * time.Second)
		if got := result(t, p, "c1"); got.Kill == nil || got.Kill.Kind != Startup || got.Started {
			t.Errorf("got %+v", got)
		}
	})
}

// POD-139: a diagnostic that cannot be carried out changes nothing and is tried again.
func TestUnknown(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		s.set("live", 0, errors.New("no such container"))
		p.Sync("u", []Target{target(&corev1.Container{Name: "c", LivenessProbe: command("live", nil)}, nil)})
		pass(time.Minute)
		if got := result(t, p, "c1"); got.Kill != nil || s.changes != 0 ||
			s.failed[0] != "Liveness probe errored: no such container" {
			t.Errorf("got %+v, %q", got, s.failed)
		}
		if s.times("live") != "[0s 10s 20s 30s 40s 50s 1m0s]" {
			t.Errorf("ran at %s", s.times("live"))
		}
	})
}

// A command that takes too long has failed.
func TestTimeoutIsAFailure(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		s.set("live", 0, fmt.Errorf("running: %w", context.DeadlineExceeded))
		p.Sync("u", []Target{target(&corev1.Container{Name: "c", LivenessProbe: command("live", nil)}, nil)})
		pass(20 * time.Second)
		if got := result(t, p, "c1"); got.Kill == nil ||
			s.failed[0] != `Liveness probe failed: command timed out: "live" timed out after 1s` {
			t.Errorf("got %+v, %q", got, s.failed)
		}
	})
}

// While a Pod is being stopped, readiness is still probed, and a liveness failure kills nothing.
func TestStopping(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		container := &corev1.Container{Name: "c", LivenessProbe: command("live", nil), ReadinessProbe: command("ready",
			nil)}
		p.Sync("u", []Target{target(container, nil)})
		if got := result(t, p, "c1"); !got.Ready {
			t.Fatalf("got %+v", got)
		}
		s.set("live", 1, nil)
		s.set("ready", 1, nil)
		p.Sync("u", []Target{target(container, func(t *Target) { t.Stopping = true })})
		pass(time.Minute)
		if got := result(t, p, "c1"); got.Ready || got.Kill != nil || s.times("live") != "[0s]" {
			t.Errorf("got %+v, live ran at %s", got, s.times("live"))
		}
		p.Sync("u", nil)
		before := s.times("ready")
		pass(time.Minute)
		if s.times("ready") != before {
			t.Error("probes go on after the end of the Pod")
		}
	})
}

// A nodeagent that restarts continues from the API's status: a ready Pod stays in its Services.
func TestTakingOver(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		container := &corev1.Container{Name: "c", StartupProbe: command("startup", nil),
			ReadinessProbe: command("ready", nil)}
		p.Sync("u", []Target{target(container, func(t *Target) {
			t.Started, t.Ready, t.StartedAt = true, true,
				time.Now().Add(-time.Hour)
		})})
		if got := result(t, p, "c1"); !got.Ready || !got.Started {
			t.Errorf("got %+v", got)
		}
		pass(time.Minute)
		if got := result(t, p, "c1"); !got.Ready || s.times("startup") != "[]" || s.times("ready") == "[]" {
			t.Errorf("got %+v, startup %s, ready %s", got, s.times("startup"), s.times("ready"))
		}
	})
}

// Probes of one Pod do not affect another.
func TestPodsAreApart(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		container := &corev1.Container{Name: "c", ReadinessProbe: command("ready", nil)}
		p.Sync("u", []Target{target(container, nil)})
		p.Sync("v", []Target{target(container, func(t *Target) {
			t.ContainerID, t.Pod = "c2", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "v"}}
		})})
		p.Sync("u", nil)
		if _, ok := p.Result("c1"); ok {
			t.Error("c1 is still probed")
		}
		if got := result(t, p, "c2"); !got.Ready {
			t.Errorf("got %+v", got)
		}
	})
}

// pass lets time go by in the bubble of a test.
func pass(d time.Duration) { <-time.After(d) }

// A redirect to another host counts as success, and an event reports it.
func TestARedirectElsewhereIsToldOf(t *testing.T) {
	s := server(t, httptest.NewServer)
	told, changed := make(chan string, 100), make(chan types.UID, 100)
	p := New(Config{Changed: func(pod types.UID) { changed <- pod },
		Tell: func(_ Target, reason, message string) { told <- reason + ": " + message }})
	defer p.Close()
	address := s.Listener.Addr().(*net.TCPAddr)
	probe := &corev1.Probe{TimeoutSeconds: 20, PeriodSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/redirect?to=http://192.0.2.1/",
			Port: intstr.FromInt32(int32(address.Port))}}}
	p.Sync("u", []Target{target(&corev1.Container{Name: "c", ReadinessProbe: probe},
		func(to *Target) { to.IP = address.IP.String() })})
	const want = "ProbeWarning: Readiness probe warning: Probe terminated redirects, Response body: "
	if got := <-told; !strings.HasPrefix(got, want) {
		t.Errorf("told %q, want %q...", got, want)
	}
	<-changed
	if got, ok := p.Result("c1"); !ok || !got.Ready {
		t.Errorf("%+v, want it ready", got)
	}
}
