package explain

import (
	"strings"
	"testing"
	"time"

	"keelson.dev/kit/introspect"
)

func lines(e introspect.Explanation) string {
	all := []string{e.Summary}
	for _, fact := range e.Facts {
		line := fact.Reason + ": " + fact.Message
		if !fact.Time.IsZero() {
			line = fact.Time.UTC().Format(time.TimeOnly) + " " + line
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

func TestExplanation(t *testing.T) {
	since := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	var doing Account
	doing.Do(0, "does nothing")
	doing.Do(2, "creates %s", Count(2, "Pod"))
	doing.Do(1, "deletes %s", Count(1, "Pod"))
	waiting := Account{Waits: []Wait{{Since: since, Reason: "Paused", For: "the end of its pause",
		Ends: "it is resumed"},
		{Reason: "NotReady", For: "1 Pod to be ready", Ends: "it is"}}}
	whole := Account{Does: doing.Does, Waits: waiting.Waits[1:], Whole: true}
	both := Account{Does: []string{"creates 1 Pod"}, Waits: waiting.Waits[1:]}
	for _, row := range []struct {
		account Account
		want    string
	}{
		{Account{Settled: "all is well"}, "waits for nothing: all is well"},
		{doing, "in its next pass creates 2 Pods (and 1 more)\nNext: creates 2 Pods\nNext: deletes 1 Pod"},
		{waiting, "waits for the end of its pause (and 1 more)\n" +
			"12:00:00 Paused: waits for the end of its pause since 2026-01-10T12:00:00Z; it ends when it is resumed\n" +
			"NotReady: waits for 1 Pod to be ready; it ends when it is"},
		{both, "in its next pass creates 1 Pod; waits for 1 Pod to be ready\nNext: creates 1 Pod\n" +
			"NotReady: waits for 1 Pod to be ready; it ends when it is"},
		{whole, "in its next pass creates 2 Pods; in its next pass deletes 1 Pod; waits for 1 Pod to be ready\n" +
			"Next: creates 2 Pods\nNext: deletes 1 Pod\nNotReady: waits for 1 Pod to be ready; it ends when it is"},
	} {
		if got := lines(row.account.Explanation()); got != row.want {
			t.Errorf("got\n%s\nwant\n%s", got, row.want)
		}
	}
}
