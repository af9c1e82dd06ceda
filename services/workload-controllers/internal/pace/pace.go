// Package pace bounds how fast an owner makes Pods while those it makes fail, at the admission of a node for example,
// and how often it writes its status. It is pure, and remembers nothing: the Pods that failed are its memory.
//
//keelson:decision
package pace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/backoff"
)

// policy is the time between two rounds of creation, by how many rounds in a row had failures.
var policy = backoff.Policy{First: 2 * time.Second, Max: 5 * time.Minute}

const (
	// sameRound is the longest time between two Pods of one round. Creation times are whole seconds.
	sameRound = time.Second
	// forget is after how long without a failure the next one is the first again.
	forget = 10 * time.Minute
)

// Pod is what is to be known of one of the owner's Pods.
type Pod struct {
	Created time.Time
	Phase   corev1.PodPhase
}

// Allow returns how many of the missing Pods may be made now. Where it is none, wake is when to ask again.
//
// After a round with failures the next one waits, twice as long each time, and is half as large each time. A Pod that
// was made later and runs ends that.
func Allow(pods []Pod, missing int, now time.Time) (create int, wake time.Time) {
	failing := failingRounds(pods, now)
	if failing == 0 {
		return missing, time.Time{}
	}
	newest := slices.MaxFunc(pods, func(a, b Pod) int { return a.Created.Compare(b.Created) })
	if due := newest.Created.Add(policy.Delay(failing)); due.After(now) {
		return 0, due
	}
	return max(1, missing>>failing), time.Time{}
}

// failingRounds counts the rounds in a row that had failures, up to now.
func failingRounds(pods []Pod, now time.Time) int {
	var running time.Time
	var failed []time.Time
	for _, pod := range pods {
		switch {
		case pod.Phase == corev1.PodFailed:
			failed = append(failed, pod.Created)
		case pod.Phase == corev1.PodRunning && pod.Created.After(running):
			running = pod.Created
		}
	}
	slices.SortFunc(failed, func(a, b time.Time) int { return b.Compare(a) })
	rounds, later := 0, now
	for _, created := range failed {
		between := later.Sub(created)
		if !created.After(running) || between > forget {
			break
		}
		if rounds == 0 || between > sameRound {
			rounds++
		}
		later = created
	}
	return rounds
}

// Earlier returns the earlier of two times to wake up at; the zero time means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
