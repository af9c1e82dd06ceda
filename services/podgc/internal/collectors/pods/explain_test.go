package pods

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/explain"
)

func TestAccount(t *testing.T) {
	graceful := func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(20 * time.Second)},
			ptr.To[int64](30)
	}
	missed := func(ago time.Duration) map[string]time.Time { return map[string]time.Time{"gone": now.Add(-ago)} }
	for _, row := range []struct {
		name string
		pod  *corev1.Pod
		in   Input
		want string
	}{
		{"a running Pod", pod("p", on("n")), Input{}, "waits for nothing: nothing takes it away"},
		{"on a node that was just missed", pod("p", on("gone")), Input{MissedSince: missed(39 * time.Second)},
			"waits for node gone, which is gone, to stay away, and then takes the Pod away"},
		{"on a node that is gone", pod("p", on("gone")), Input{MissedSince: missed(40 * time.Second)},
			"in its next pass takes it away: its node is gone"},
		{"being deleted", pod("p", on("n"), graceful), Input{},
			"waits for node n to end the Pod by 2026-03-01T12:00:20Z"},
		{"being deleted, without a node", pod("p", graceful), Input{},
			"in its next pass takes it away: it is being deleted and was never bound to a node"},
		{"finished", pod("p", on("n"), phase("Failed")), Input{Threshold: 1},
			"waits for nothing: it has finished, and stays until it is the oldest of more than 1"},
		{"finished, and all may stay", pod("p", on("n"), phase("Failed")), Input{},
			"waits for nothing: nothing takes it away"},
	} {
		row.pod.UID = "p"
		row.in.Now, row.in.Nodes, row.in.Pods = now, nodes(node("n", "True")), []*corev1.Pod{row.pod}
		if got := account(row.in, Decide(row.in), row.pod).Explanation().Summary; got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	p := pod("p", on("n"), graceful)
	a := account(Input{Now: now, Nodes: nodes(node("n", "True"))}, Plan{}, p)
	if len(a.Waits) != 1 || !a.Waits[0].Since.Equal(now.Add(-10*time.Second)) {
		t.Errorf("a Pod that is being deleted for 10 s waits %+v", a.Waits)
	}
}

// Explaining remembers nothing, and adds what another collector is about to do.
func TestExplainer(t *testing.T) {
	b := newBench(pod("p", on("gone")))
	other := func(_ context.Context, p *corev1.Pod) explain.Account {
		return explain.Account{Waits: []explain.Wait{{For: "another for " + p.Name}}}
	}
	e, known := b.collector.explainer(other)(t.Context(), "default", "p")
	want := "waits for node gone, which is gone, to stay away, and then takes the Pod away; waits for another for p"
	if !known || e.Summary != want || b.collector.missedSince != nil {
		t.Errorf("%q, %t, remembers %v", e.Summary, known, b.collector.missedSince)
	}
	if _, known := b.collector.explainer(other)(t.Context(), "default", "q"); known {
		t.Error("a Pod that is gone is known")
	}
}
