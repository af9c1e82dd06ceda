package disruption

import (
	"errors"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
)

// said returns the summary and facts of an account.
func said(in Input, plan Plan) string {
	e := account(in, plan).Explanation()
	lines := []string{e.Summary}
	for _, fact := range e.Facts {
		lines = append(lines, fact.Reason+": "+fact.Message)
	}
	return strings.Join(lines, "\n")
}

func TestAccount(t *testing.T) {
	of := func(spec policyv1.PodDisruptionBudgetSpec, evicted map[string]time.Duration, kinds string) Input {
		return Input{Now: now, Budget: budget(spec, evicted), Pods: pods(kinds), Intended: len(kinds)}
	}
	unknown := of(atMost("1"), nil, "RR")
	unknown.IntendedError = errors.New("nobody says")
	for name, row := range map[string]struct {
		in   Input
		want []string
	}{
		"room": {of(atLeast("1"), nil, "RR"), []string{
			"waits for nothing: it allows 1 disruption: 2 Pods are healthy, 1 must be"}},
		"no room": {of(atLeast("2"), nil, "RuR"), []string{
			"waits for more healthy Pods: 2 of 3 are, and 2 must be since 2026-01-10T12:00:00Z",
			"it ends when more than 2"}},
		"an eviction under way": {of(atLeast("1"), map[string]time.Duration{"p0": time.Minute}, "RRR"), []string{
			"waits for the evicted Pod p0 to go since 2026-01-10T11:59:00Z", "or it is 2026-01-10T12:01:00Z"}},
		"unknown": {unknown, []string{"SyncFailed: waits for how many Pods are intended: nobody says"}},
	} {
		said := said(row.in, Decide(row.in))
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
	}
}
