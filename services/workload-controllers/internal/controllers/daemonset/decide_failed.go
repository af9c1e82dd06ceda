package daemonset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/backoff"
	"keelson.dev/services/workload-controllers/internal/podops"
)

// replacing is the time between two replacements of Pods that failed on one node: a node may refuse every Pod that it
// is given.
var replacing = backoff.Policy{First: time.Second, Max: 15 * time.Minute}

// forget is after how long without one a failure is the first again.
const forget = 30 * time.Minute

// Failure is what is remembered of the Pods of one template that failed on one node.
type Failure struct {
	// Count is how many were replaced in a row, and Last when.
	Count int
	Last  time.Time
	// Generation is the DaemonSet's: a change of it may be the cure.
	Generation int64
}

// Again returns what is to be remembered when one more Pod is replaced.
func (f Failure) Again(generation int64, now time.Time) Failure {
	return Failure{Count: f.known(generation, now) + 1, Last: now, Generation: generation}
}

// known returns how many of the failures still count.
func (f Failure) known(generation int64, now time.Time) int {
	if f.Generation != generation || now.Sub(f.Last) > forget {
		return 0
	}
	return f.Count
}

// endFailed ends a Pod that has failed when the node's time for another has come.
func (r *round) endFailed(pod *corev1.Pod, node string) {
	f := r.Failures[node]
	due := f.Last.Add(replacing.Delay(f.known(r.DaemonSet.Generation, r.Now)))
	if due.After(r.Now) {
		r.wake(due)
		return
	}
	event := podFailed(pod)
	r.plan.Delete = append(r.plan.Delete, Deletion{Pod: pod, Reason: podops.Recreated, Failed: node, Event: &event})
}
