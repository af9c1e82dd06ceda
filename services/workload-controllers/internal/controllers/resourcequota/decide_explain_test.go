package resourcequota

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestTell(t *testing.T) {
	for name, row := range map[string]struct {
		hard, charged, counted corev1.ResourceList
		want                   []string
	}{
		"room": {list("pods", "3"), list("pods", "2"), list("pods", "2"),
			[]string{"waits for nothing: there is room for more of all that it bounds"}},
		"full": {list("pods", "3", "secrets", "9"), list("pods", "3", "secrets", "1"), list("pods", "3", "secrets",
			"1"),
			[]string{"waits for less use of pods: 3 of 3 are used, and no more are let in",
				"Exhausted: waits for less use of pods: 3 of 3 are used, and no more are let in; it ends when some " +
					"of it is given back, or spec.hard is raised"}},
		"to be written": {list("pods", "3"), list("pods", "1"), list("pods", "2"),
			[]string{"in its next pass writes what is used into the status"}},
		"on its way": {list("pods", "3"), list("pods", "2"), list("pods", "1"), []string{
			"waits for objects that may be on their way: 2 of pods are charged and 1 are there",
			"InFlight: waits for objects that may be on their way: 2 of pods are charged and 1 are there since " +
				"2026-01-10T11:59:00Z; it ends when they are there, or it is 2026-01-10T12:01:00Z"}},
		"nobody counts it": {list("pods", "3", "count/widgets.example.com", "5"), list("pods", "2"), list("pods", "2"),
			[]string{"waits for somebody who counts count/widgets.example.com, of which it allows 5"}},
	} {
		in := Input{Now: now, Quota: newQuota(row.hard, row.charged), Counted: row.counted,
			Raised: now.Add(-time.Minute)}
		e := tell(in, Decide(in)).Explanation()
		said := e.Summary
		for _, fact := range e.Facts {
			said += "\n" + fact.Reason + ": " + fact.Message
		}
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: got %q, want %q", name, said, want)
			}
		}
	}
}
