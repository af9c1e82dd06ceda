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
		all = append(all, fact.Reason+": "+fact.Message)
	}
	return strings.Join(all, "\n")
}

func TestExplanation(t *testing.T) {
	since := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		account Account
		want    string
	}{
		{Account{Settled: "all is well"}, "waits for nothing: all is well"},
		{Account{Does: []string{"deletes it"}, Settled: "x"}, "in its next pass deletes it\nNext: deletes it"},
		{Account{Waits: []Wait{{Since: since, Reason: "A", For: "a", Ends: "it is"}, {Reason: "B", For: "b",
			Ends: "it was"}}}, "waits for a; waits for b\n" +
			"A: waits for a since 2026-01-10T12:00:00Z; it ends when it is\nB: waits for b; it ends when it was"},
	} {
		if got := lines(row.account.Explanation()); got != row.want {
			t.Errorf("got\n%s\nwant\n%s", got, row.want)
		}
	}
}
