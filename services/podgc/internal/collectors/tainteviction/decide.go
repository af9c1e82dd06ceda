package tainteviction

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/kit/seconds"
)

// disruption is the condition that a Pod gets before it is deleted.
var disruption = corev1.PodCondition{
	Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
	Reason: "DeletionByTaintManager", Message: "Taint manager: deleting due to NoExecute taint",
}

// taintKey identifies a taint of a Node.
type taintKey struct {
	key    string
	effect corev1.TaintEffect
	value  string
}

func keyOf(t corev1.Taint) taintKey { return taintKey{t.Key, t.Effect, t.Value} }

// Input is all that a pass over one Node depends on. Decide changes none of it.
type Input struct {
	Now  time.Time
	Node *corev1.Node
	// Pods are those on the Node.
	Pods []*corev1.Pod
	// Since holds when each NoExecute taint was first seen; Waiting, which Pods an earlier pass left for later.
	Since   map[taintKey]time.Time
	Waiting map[types.UID]bool
}

// Plan is the effect of one pass.
type Plan struct {
	// Evict lists the Pods whose time has come, and Spared those that had to wait for it and need not any more.
	Evict, Spared []*corev1.Pod
	// Wake is when the next one's time comes; zero: never.
	Wake time.Time
	// Since and Waiting are the next pass's input.
	Since   map[taintKey]time.Time
	Waiting map[types.UID]bool
}

// Decide says which Pods the Node's taints evict, and when.
func Decide(in Input) Plan {
	plan := Plan{Since: map[taintKey]time.Time{}, Waiting: map[types.UID]bool{}}
	taints := noExecute(in.Node)
	for _, taint := range taints {
		plan.Since[keyOf(taint)] = since(taint, in)
	}
	for _, pod := range in.Pods {
		if podview.IsTerminating(pod) {
			continue
		}
		due, evicted := dueAt(pod, taints, plan.Since)
		switch {
		case evicted && !in.Now.Before(due):
			plan.Evict = append(plan.Evict, pod)
		case evicted:
			plan.Waiting[pod.UID] = true
			if plan.Wake.IsZero() || due.Before(plan.Wake) {
				plan.Wake = due
			}
		case in.Waiting[pod.UID]:
			plan.Spared = append(plan.Spared, pod)
		}
	}
	return plan
}

// noExecute returns the taints that evict.
func noExecute(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectNoExecute
	})
}

// since is when the taint began: when it says that it was added, so that another leader counts on, but never after it
// was first seen here.
func since(taint corev1.Taint, in Input) time.Time {
	seen, known := in.Since[keyOf(taint)]
	if !known {
		seen = in.Now
	}
	if taint.TimeAdded != nil && taint.TimeAdded.Time.Before(seen) {
		return taint.TimeAdded.Time
	}
	return seen
}

// dueAt is when the first of the taints evicts the Pod; false means that it tolerates them all for ever.
func dueAt(pod *corev1.Pod, taints []corev1.Taint, since map[taintKey]time.Time) (due time.Time, evicted bool) {
	for i := range taints {
		patience, forever := toleration(pod, &taints[i])
		if forever {
			continue
		}
		if at := since[keyOf(taints[i])].Add(patience); !evicted || at.Before(due) {
			due, evicted = at, true
		}
	}
	return due, evicted
}

// toleration is how long the Pod bears a taint, by the first of its tolerations that matches it.
func toleration(pod *corev1.Pod, taint *corev1.Taint) (patience time.Duration, forever bool) {
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if !t.ToleratesTaint(logr.Discard(), taint, true) {
			continue
		}
		if t.TolerationSeconds == nil {
			return 0, true
		}
		return seconds.AtLeastNone(*t.TolerationSeconds), false
	}
	return 0, false
}
