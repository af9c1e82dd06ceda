package nodehealth

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/explain"
)

// outlook is how a node stands among the others, and what is ahead of it.
type outlook struct {
	Standing
	// heard is how long ago the node last gave a sign of life, as far as the collector looked; grace is how long that
	// may be.
	heard, grace time.Duration
	// place is the node's in the line of those of its zone that are to be given up, the first is 1; 0: in none.
	place int
	// zone is the state of the node's zone; pause is the time between two nodes of it that are given up, 0: none is.
	zone  zoneState
	pause time.Duration
}

// account explains a decision about a Node.
func account(in Input, plan Plan, o outlook) explain.Account {
	a := explain.Account{Whole: true, Settled: fmt.Sprintf("the node was heard %s ago, and counts as lost after %s of "+
		"silence", o.heard.Round(time.Second), o.grace)}
	if plan.Conditions != nil {
		a.Does = append(a.Does, "says of the Node that it is silent")
	}
	if len(plan.NotReady) > 0 {
		a.Does = append(a.Does, fmt.Sprintf("says of %d Pods on it that they are not ready", len(plan.NotReady)))
	}
	if plan.Retaint {
		a.Does = append(a.Does, "gives it the taints ["+strings.Join(keys(plan.Taints), ", ")+"]")
	}
	a.Waits = append(readiness(in), pressed(in.Node)...)
	if wantsTurn(in.Node, in.Silent) {
		a.Waits = append(a.Waits, turn(in, o))
	}
	return a
}

// readiness is the wait for a node to be ready.
func readiness(in Input) []explain.Wait {
	switch ready := conditions.Node.Find(in.Node.Status.Conditions, corev1.NodeReady); {
	case ready == nil:
		return []explain.Wait{{Since: in.Node.CreationTimestamp.Time, Reason: reasonNever,
			For: "the node to report for the first time", Ends: "its nodeagent writes the Node's status"}}
	case in.Silent || ready.Status == corev1.ConditionUnknown:
		return []explain.Wait{{Since: ready.LastTransitionTime.Time, Reason: ready.Reason,
			For: "a sign of life of the node", Ends: "its nodeagent renews its Lease or writes the Node's status"}}
	case ready.Status != corev1.ConditionTrue:
		return []explain.Wait{{Since: ready.LastTransitionTime.Time, Reason: ready.Reason,
			For: "the node to be ready: " + ready.Message, Ends: "it reports that it is"}}
	}
	return nil
}

// pressed are the waits for what keeps new Pods away beside that.
func pressed(node *corev1.Node) []explain.Wait {
	var waits []explain.Wait
	for _, p := range pressures {
		c := conditions.Node.Find(node.Status.Conditions, p.condition)
		if c != nil && c.Status == corev1.ConditionTrue {
			waits = append(waits, explain.Wait{Since: c.LastTransitionTime.Time, Reason: c.Reason,
				For:  fmt.Sprintf("the end of %s, which the taint %s tells of: %s", p.condition, p.taint, c.Message),
				Ends: "the node reports that it is over"})
		}
	}
	if node.Spec.Unschedulable {
		waits = append(waits, explain.Wait{Reason: "Unschedulable", For: "somebody to let Pods go there again",
			Ends: "spec.unschedulable is false (kubectl uncordon)"})
	}
	return waits
}

// turn is the wait for the NoExecute taints.
func turn(in Input, o outlook) explain.Wait {
	w := explain.Wait{Reason: "Eviction", For: "its turn to lose its Pods",
		Ends: "the node is in order again, or its turn has come"}
	switch {
	case in.Halted:
		w.For = "any node to be in order: while none is, no node loses its Pods"
		w.Ends = "a node is ready again"
	case o.pause == 0:
		w.For += fmt.Sprintf(": its zone is in state %s, in which no node loses its Pods", o.zone)
		w.Ends = "the node or more of its zone is in order again"
	case o.place > 0:
		w.For += fmt.Sprintf(": it is number %d in its zone, of which one has its turn every %s", o.place, o.pause)
	}
	return w
}
