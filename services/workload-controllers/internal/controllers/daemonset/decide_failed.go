package daemonset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/backoff"
	"keelson.dev/services/workload-controllers/internal/podops"
)

// replacing is the delay between two replacements of failed Pods on one node: a node may reject every Pod.
var replacing = backoff.Policy{First: time.Second, Max: 15 * time.Minute}

// forget is how long after a failure the next one counts as the first again.
const forget = 30 * time.Minute

// Failure is the record of the failed Pods of one template on one node.
type Failure struct {
	// Count is how many were replaced in a row, and Last is when the last one was.
	Count int
	Last  time.Time
	// Generation is the DaemonSet's generation: a change of it may fix the failure.
	Generation int64
}

// Again returns the record after one more replacement.
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

// endFailed deletes a failed Pod once the node's delay has passed.
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
