// Package pods collects Pods that nothing else ends: those of a node that is gone, those being deleted that no node
// runs, and the oldest finished ones above a threshold. It alone of all collectors may force a deletion (SAF-161).
package pods

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// quarantine is how long a node must have been missed before its Pods are looked at.
const quarantine = 40 * time.Second

// Reason says why a Pod is collected: the log line and the metric about it use the same word.
type Reason string

// The reasons.
const (
	Orphaned     Reason = "Orphaned"     // Its node is gone.
	Unscheduled  Reason = "Unscheduled"  // It is being deleted and was never bound.
	OutOfService Reason = "OutOfService" // It is being deleted and its node was declared to be switched off.
	Terminated   Reason = "Terminated"   // It has finished, and there are too many of those.
)

// reasons stand in the order in which they are tried, each with what precedes the deletion. Every deletion is forced,
// and only the version of the Pod that was decided on is deleted.
var reasons = []struct {
	Reason
	// disruption is the condition that the Pod gets first; nil where its end is no disruption (SAF-071).
	disruption *corev1.PodCondition
}{
	{Orphaned, &corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists"}},
	{Unscheduled, nil},
	{OutOfService, nil},
	{Terminated, nil},
}

// Input is what a sweep decides on. Nothing in it is changed.
type Input struct {
	Pods  []*corev1.Pod
	Nodes map[string]*corev1.Node
	// MissedSince holds, for each node that an earlier sweep missed, when that was first.
	MissedSince map[string]time.Time
	// Threshold is how many finished Pods may stay; 0 or less keeps them all.
	Threshold int
	Now       time.Time
}

// Plan is what a sweep does.
type Plan struct {
	// Collect lists the Pods to take away, oldest first within each reason. Orphaned ones need a live check of the node
	// first.
	Collect []Collection
	// MissedSince is the next sweep's input.
	MissedSince map[string]time.Time
}

// Collection takes one Pod away.
type Collection struct {
	Pod    *corev1.Pod
	Reason Reason
	// MarkFailed asks for phase Failed before the deletion: the Pod is in no terminal phase.
	MarkFailed bool
	// Disruption is the condition to set before the deletion; nil for none.
	Disruption *corev1.PodCondition
}

// Decide plans one sweep.
func Decide(in Input) Plan {
	plan := Plan{MissedSince: missed(in)}
	byReason := map[Reason][]Collection{}
	var finished []*corev1.Pod
	for _, pod := range in.Pods {
		reason, collect := classify(pod, in, plan.MissedSince)
		switch {
		case collect:
			byReason[reason] = append(byReason[reason], Collection{
				Pod: pod, Reason: reason, MarkFailed: !podview.IsTerminal(pod),
			})
		case podview.IsTerminal(pod) && !podview.IsTerminating(pod):
			finished = append(finished, pod)
		}
	}
	for _, pod := range surplus(finished, in.Threshold) {
		byReason[Terminated] = append(byReason[Terminated], Collection{Pod: pod, Reason: Terminated})
	}
	for _, r := range reasons {
		collections := byReason[r.Reason]
		slices.SortFunc(collections, func(a, b Collection) int { return oldestFirst(a.Pod, b.Pod) })
		for _, collection := range collections {
			collection.Disruption = r.disruption
			plan.Collect = append(plan.Collect, collection)
		}
	}
	return plan
}

// missed returns the nodes that Pods name and the cluster lacks, each with the time it was first missed. A node that
// came back starts again.
func missed(in Input) map[string]time.Time {
	now := map[string]time.Time{}
	for _, pod := range in.Pods {
		node := pod.Spec.NodeName
		if node == "" || in.Nodes[node] != nil {
			continue
		}
		if since, known := in.MissedSince[node]; known {
			now[node] = since
		} else {
			now[node] = in.Now
		}
	}
	return now
}

func classify(pod *corev1.Pod, in Input, missedSince map[string]time.Time) (Reason, bool) {
	if since, gone := missedSince[pod.Spec.NodeName]; gone {
		return Orphaned, in.Now.Sub(since) >= quarantine
	}
	if !podview.IsTerminating(pod) {
		return "", false
	}
	if pod.Spec.NodeName == "" {
		return Unscheduled, true
	}
	return OutOfService, isOutOfService(in.Nodes[pod.Spec.NodeName])
}

// isOutOfService reports whether an administrator declared a node that is not ready to be switched off.
func isOutOfService(node *corev1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return !ready && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeOutOfService
	})
}

// surplus returns the finished Pods above the threshold, oldest first.
func surplus(finished []*corev1.Pod, threshold int) []*corev1.Pod {
	if threshold <= 0 || len(finished) <= threshold {
		return nil
	}
	slices.SortFunc(finished, oldestFirst)
	return finished[:len(finished)-threshold]
}

func oldestFirst(a, b *corev1.Pod) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

// nodesToConfirm returns the nodes whose absence the plan builds on, sorted.
func (p Plan) nodesToConfirm() []string {
	names := map[string]bool{}
	for _, c := range p.Collect {
		if c.Reason == Orphaned {
			names[c.Pod.Spec.NodeName] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
