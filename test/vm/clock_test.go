package vm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"keelson.dev/test/scenario"
)

// clock lets the machine's clock jump ahead and back: no Pod is evicted or doubled, and work goes on. It stays within
// what the mesh's certificates are valid for.
func clock(t *testing.T, m *Mesh) {
	w := scenario.In(t, m)
	w.Deploy(2, scenario.HelloV1)
	before := pods(w)
	for _, jump := range []string{"+3 hours", "-3 hours", "-4 minutes", "+4 minutes"} {
		t.Run(jump, func(t *testing.T) {
			m.Shell(t, "date -s '"+jump+"'")
			// A node that falls silent is noticed after 40 s; what a jump sets off is due by then.
			observe(t, 45*time.Second, func() {
				if got := pods(w); got != before {
					t.Fatalf("the Pods were\n%s\nand are\n%s", before, got)
				}
			})
			w.Deploy(3, scenario.HelloV1)
			w.Deploy(2, scenario.HelloV1)
			before = pods(w)
		})
	}
}

// pods tells the Pods of a world and how often their containers were started.
func pods(w *scenario.World) string {
	var lines []string
	for _, pod := range w.Pods("") {
		lines = append(lines, fmt.Sprintf("%s %s %s, deleting %v", pod.Name, pod.UID, brief(&pod),
			pod.DeletionTimestamp != nil))
	}
	return strings.Join(lines, "\n")
}

// observe looks again and again for a while.
func observe(t *testing.T, patience time.Duration, look func()) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		look()
		select {
		case <-deadline:
			return
		case <-tick.C:
		}
	}
}
