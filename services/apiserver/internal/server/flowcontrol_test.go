package server

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// The two numbers are together the seats of priority and fairness, and without it what each class has in flight. How
// many requests are held, and wait, does not shrink with the seats.
func TestFlowControl(t *testing.T) {
	for _, row := range []struct {
		name                 string
		on                   bool
		reads, writes        int
		seats                int
		heldReads, heldWrite int
		wrong                string
	}{
		{"by default", true, 3000, 1000, 4000, 3000, 1000, ""},
		{"few seats", true, 1, 0, 1, 3000, 1000, ""},
		{"many", true, 5000, 4000, 9000, 5000, 4000, ""},
		{"none", true, 0, 0, 0, 3000, 1000, "--max-requests-inflight: 0 requests at a time"},
		{"less than none", true, 1, -1, 0, 3000, 1000, "--max-mutating-requests-inflight: -1 is less than 0"},
		{"off", false, 400, 200, 600, 400, 200, ""},
		{"off, without limit", false, 0, 0, 0, 0, 0, ""},
		{"off, less than none", false, -1, 0, -1, -1, 0, "--max-requests-inflight: -1 is less than 0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := FlowControl{PriorityAndFairness: row.on, MaxRequestsInFlight: row.reads,
				MaxMutatingRequestsInFlight: row.writes}
			reads, writes := f.held()
			if f.seats() != row.seats || reads != row.heldReads || writes != row.heldWrite {
				t.Errorf("%d seats, %d and %d in flight", f.seats(), reads, writes)
			}
			err := errors.Join(f.validate()...)
			if (err == nil) != (row.wrong == "") || err != nil && !strings.HasPrefix(err.Error(), row.wrong) {
				t.Errorf("%v, want %q", err, row.wrong)
			}
			if err != nil {
				return
			}
			client := fake.NewClientset()
			if got := f.of(informers.NewSharedInformerFactory(client, 0), client); (got != nil) != row.on {
				t.Errorf("priority and fairness is %v", got)
			}
		})
	}
}
