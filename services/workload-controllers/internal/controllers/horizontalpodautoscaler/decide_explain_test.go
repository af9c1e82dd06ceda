package horizontalpodautoscaler

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAccount(t *testing.T) {
	stable := input(50, 50)
	busy := input(100, 100)
	full := sized(input(each(10, 100)...), 10)
	lost := input(50)
	lost.Target = Target{Err: errors.New("no such thing")}
	idle := sized(input(), 0)
	blind := input(50, 50)
	blind.Readings = []Reading{{Err: errors.New("no metrics")}}
	held := input(10, 10, 10)
	held.Settings.DownscaleStabilization = 5 * time.Minute
	held.History = History{}.begun(3, now)
	for name, row := range map[string]struct {
		in   Input
		want []string
	}{
		"as it should be": {stable, []string{"waits for nothing: the target has 2 replicas, as its metrics ask; they " +
			"are read again every 15s"}},
		"more load": {busy, []string{"in its next pass scales the target from 2 to 4: cpu resource utilization " +
			"(percentage of request) above target"}},
		"no more allowed": {full, []string{"waits for leave to go further: the desired replica count is more than " +
			"the maximum replica count"}},
		"no target": {lost, []string{"waits for the target's scale: the HPA controller was unable to get the " +
			"target's current scale: no such thing"}},
		"switched off": {idle, []string{"waits for the target to be in use: scaling is disabled since the replica " +
			"count of the target is zero"}},
		"no metrics": {blind, []string{"waits for metrics to go by: the HPA was unable to compute the replica count",
			"no metrics"}},
		"stabilized": {held, []string{"waits for the load to stay as it is: recent recommendations were higher"}},
	} {
		got := account(row.in, Decide(row.in)).Explanation()
		for _, want := range row.want {
			if !strings.Contains(got.Summary, want) {
				t.Errorf("%s: got %q, want %q", name, got.Summary, want)
			}
		}
		if len(got.Facts) > 0 && got.Facts[0].Reason != "Next" && !got.Facts[0].Time.Equal(now) {
			t.Errorf("%s: waits since %v, want %v", name, got.Facts[0].Time, now)
		}
	}
}
