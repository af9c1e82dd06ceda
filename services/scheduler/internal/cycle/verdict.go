package cycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/extender"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/volumes"
)

// Verdict is the outcome of one try.
type Verdict struct {
	Pod *corev1.Pod
	// Attempt counts the tries of this Pod, from 1.
	Attempt int
	// Arrived is when the Pod, or its group, came into the queue.
	Arrived time.Time
	// Nodes is how many nodes there were.
	Nodes int

	// Node is where the Pod goes; empty when no node can take it.
	Node string
	// Score is the node's, Feasible how many nodes could have taken the Pod.
	Score    int64
	Feasible int

	// Reasons say why no node can take the Pod.
	Reasons []class.Reason
	// Plan says how the Pod comes to room on Nominated by taking that of others; nil when it does not.
	Plan *preempt.Plan
	// Nominated is the node on which room is kept for the Pod.
	Nominated string
	// Preemption says why the Pod preempts no other; empty when it does, or may not be asked.
	Preemption string
	// Untried is how many nodes the preemption across nodes did not try, as it would have taken too long.
	Untried int
	// Question is what extenders are asked before it is decided; nil where none has a say. The rest of the Verdict
	// follows from Answered.
	Question *extender.Question
	// Failure is why nothing could be decided; empty where something was.
	Failure string
	// Group says why the Pod's whole group is refused; empty for a Pod that is refused by itself.
	Group string
	// Steps are what the claims of the Pod get before it can be bound; nothing where they have their volumes.
	Steps []volumes.Step
	// Vain is why the Pod waited on its node for its claims in vain; empty where it did not.
	Vain string
}

// Message says why no node can take the Pod, in the words that users of `kubectl describe pod` know.
func (v *Verdict) Message() string {
	switch {
	case v.Failure != "":
		return v.Failure
	case v.Group != "":
		return v.Group
	}
	if v.Nodes == 0 {
		return "0/0 nodes are available: no nodes available to schedule pods."
	}
	parts := make([]string, 0, len(v.Reasons))
	for _, r := range v.Reasons {
		if r.Whole {
			parts = append(parts, r.Text)
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", r.Nodes, r.Text))
	}
	return available(v.Nodes, parts) + preemptionPart(v.Preemption) + untriedPart(v.Untried)
}

// available says that no node is available, and why.
func available(nodes int, parts []string) string {
	slices.Sort(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(parts, ", "))
}

func preemptionPart(why string) string {
	if why == "" {
		return ""
	}
	return " preemption: " + why
}

func untriedPart(nodes int) string {
	if nodes == 0 {
		return ""
	}
	return fmt.Sprintf(" preemption across nodes: %d node(s) were not tried, as too many pods count in their domains.",
		nodes)
}

// Condition is what the Pod's status says of a try that failed. The caller sets the times.
func (v *Verdict) Condition() corev1.PodCondition {
	reason := corev1.PodReasonUnschedulable
	if v.Failure != "" {
		reason = corev1.PodReasonSchedulerError
	}
	return corev1.PodCondition{
		Type:               corev1.PodScheduled,
		Status:             corev1.ConditionFalse,
		Reason:             reason,
		Message:            v.Message(),
		ObservedGeneration: v.Pod.Generation,
	}
}
