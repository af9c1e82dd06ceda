package probe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each diagnostic is counted by its outcome under the kubelet's metric names, over all instances of a container,
// until the Pod is gone.
func TestDiagnosticsAreCounted(t *testing.T) {
	play(t, func(t *testing.T, s *script, p *Prober) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(p.Metrics()...)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Namespace: "ns", Name: "web"}}
		other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "v", Namespace: "ns", Name: "db"}}
		container := &corev1.Container{Name: "c", ReadinessProbe: command("ready", nil),
			LivenessProbe: command("live", nil)}
		of := func(pod *corev1.Pod, id string) []Target {
			return []Target{target(container, func(t *Target) { t.Pod, t.ContainerID = pod, id })}
		}
		p.Sync("u", of(pod, "c1"))
		pass(15 * time.Second)
		s.set("live", 1, nil)
		s.set("ready", 0, errors.New("no such container"))
		pass(10 * time.Second)
		p.Sync("u", of(pod, "c2"))
		pass(time.Second)
		p.Sync("v", of(other, "c3"))
		pass(time.Second)
		before := counted(t, registry)
		want := []string{
			"prober_probe_duration_seconds container=c namespace=ns pod=db probe_type=Liveness",
			"prober_probe_total container=c namespace=ns pod=db pod_uid=v probe_type=Liveness result=failed",
			"prober_probe_total container=c namespace=ns pod=web pod_uid=u probe_type=Liveness result=failed",
			"prober_probe_total container=c namespace=ns pod=web pod_uid=u probe_type=Liveness result=successful",
			"prober_probe_total container=c namespace=ns pod=web pod_uid=u probe_type=Readiness result=successful",
			"prober_probe_total container=c namespace=ns pod=web pod_uid=u probe_type=Readiness result=unknown",
		}
		for _, name := range want {
			if before[name] == 0 {
				t.Errorf("nothing was counted of %s", name)
			}
		}
		runs := 0
		for name, n := range before {
			if strings.HasPrefix(name, "prober_probe_total") {
				runs += n
			}
		}
		s.mu.Lock()
		done := len(s.runs["ready"]) + len(s.runs["live"])
		s.mu.Unlock()
		if runs != done {
			t.Errorf("%d were counted of %d diagnostics", runs, done)
		}
		p.Sync("u", nil)
		synctest.Wait()
		if got := counted(t, registry); fmt.Sprint(got) != fmt.Sprint(before) {
			t.Errorf("when the probes end, what was counted changes to %v", got)
		}
		p.Forget(pod)
		pass(time.Minute)
		for name := range counted(t, registry) {
			if !strings.Contains(name, "pod=db") {
				t.Errorf("%s is counted of a Pod that is gone", name)
			}
		}
	})
}

// counted returns the counters by name and labels.
func counted(t *testing.T, registry *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			parts := []string{family.GetName()}
			for _, label := range metric.GetLabel() {
				parts = append(parts, label.GetName()+"="+label.GetValue())
			}
			slices.Sort(parts[1:])
			out[strings.Join(parts, " ")] = int(metric.GetCounter().GetValue()) +
				int(metric.GetHistogram().GetSampleCount())
		}
	}
	return out
}
