package nodehealth

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/events"
	"keelson.dev/kit/podview"
)

// What the API says of a node that has fallen silent, and of one that never said a word.
const (
	reasonSilent  = "NodeStatusUnknown"
	messageSilent = "Kubelet stopped posting node status."
	reasonNever   = "NodeStatusNeverUpdated"
	messageNever  = "Kubelet never posted node status."
)

// reported are the conditions that only the node itself can know.
var reported = []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
	corev1.NodePIDPressure}

// Input is all that a pass over one Node depends on. Decide changes none of it.
type Input struct {
	Now  time.Time
	Node *corev1.Node
	Standing
	// Pods are those of a Node that is lost.
	Pods []*corev1.Pod
}

// Standing is how a node stands among the others.
type Standing struct {
	// Silent says that the node has given no sign of life for its grace period.
	Silent bool
	// Halted says that no node can be told to be in order: then none is given up.
	Halted bool
	// Evict says that it is this node's turn to be given up.
	Evict bool
	// Wait is when to ask for the turn again; 0 means that an event will wake the Node.
	Wait time.Duration
}

// Plan is the effect of one pass.
type Plan struct {
	// Conditions replace those of the Node if they are not nil; then the pass ends, for the rest follows from them.
	Conditions []corev1.NodeCondition
	// Event is what is said of the Node then; nil for nothing.
	Event *events.Event
	// NotReady are Pods whose readiness is no longer reported.
	NotReady []*corev1.Pod
	// Retaint asks for Taints in the place of the Node's.
	Retaint bool
	Taints  []corev1.Taint
}

// Decide says what has to be written about a Node and its Pods.
func Decide(in Input) Plan {
	if in.Silent {
		if list, event, changed := silence(in); changed {
			return Plan{Conditions: list, Event: event}
		}
	}
	var plan Plan
	if isLost(in.Node, in.Silent) {
		for _, pod := range in.Pods {
			if podview.IsReady(pod) {
				plan.NotReady = append(plan.NotReady, pod)
			}
		}
	}
	plan.Taints, plan.Retaint = retaint(in.Node, eviction(in), in.Now)
	return plan
}

// silence returns the conditions of a Node that no longer reports.
func silence(in Input) (list []corev1.NodeCondition, event *events.Event, changed bool) {
	list = in.Node.Status.Conditions
	for _, kind := range reported {
		next := corev1.NodeCondition{Type: kind, Status: corev1.ConditionUnknown, Reason: reasonNever,
			Message: messageNever, LastHeartbeatTime: in.Node.CreationTimestamp}
		last := conditions.Node.Find(list, kind)
		if last != nil {
			if last.Status == corev1.ConditionUnknown {
				continue
			}
			next.Reason, next.Message, next.LastHeartbeatTime = reasonSilent, messageSilent, last.LastHeartbeatTime
			if kind == corev1.NodeReady && last.Status == corev1.ConditionTrue {
				e := events.Normal("NodeNotReady", "Node %s status is now: NodeNotReady", in.Node.Name)
				event = &e
			}
		}
		list, _ = conditions.Node.Set(list, next, in.Now)
		changed = true
	}
	return list, event, changed
}

// isLost reports whether the state of the Node's Pods is no longer known.
func isLost(node *corev1.Node, silent bool) bool {
	ready := conditions.Node.Find(node.Status.Conditions, corev1.NodeReady)
	return silent && ready != nil && ready.Status == corev1.ConditionUnknown
}

// eviction is the key of the NoExecute taint that the Node should have now. One that has such a taint has had its
// turn: it changes with the condition at once.
func eviction(in Input) string {
	if in.Halted || !in.Evict && !isGivenUp(in.Node) {
		return ""
	}
	return evictionTaint(in.Node)
}

// isGivenUp reports whether the Node has a taint that evicts Pods from nodes in trouble.
func isGivenUp(node *corev1.Node) bool { return slices.ContainsFunc(node.Spec.Taints, isEviction) }

// wantsTurn reports whether the Node waits to be given up. Of a condition Unknown that another leader wrote the
// silence is awaited anew.
func wantsTurn(node *corev1.Node, silent bool) bool {
	switch evictionTaint(node) {
	case "":
		return false
	case corev1.TaintNodeUnreachable:
		return silent && !isGivenUp(node)
	}
	return !isGivenUp(node)
}
