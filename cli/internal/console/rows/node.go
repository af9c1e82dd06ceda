package rows

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Node is a row of the table of nodes.
type Node struct {
	Named
	State string `json:"state"`
	Tone  Tone   `json:"tone"`
	// Problems say why it is not ready or what it lacks, a sentence each.
	Problems []string `json:"problems,omitempty"`
	// Taints are those that keep Pods away, as kubectl writes them.
	Taints []string `json:"taints,omitempty"`
	// CPU and Memory are what it can give to Pods, as the API writes quantities, MostPods how many Pods it takes.
	CPU      string `json:"cpu,omitempty"`
	Memory   string `json:"memory,omitempty"`
	MostPods int64  `json:"mostPods"`
	Version  string `json:"version,omitempty"`
	Address  string `json:"address,omitempty"`
}

// OfNode returns the row of a Node.
func OfNode(n *corev1.Node) Node {
	row := Node{Named: named("Node", n), State: "has not reported yet", Tone: Busy, CPU: room(n, corev1.ResourceCPU),
		Memory: room(n, corev1.ResourceMemory), MostPods: n.Status.Allocatable.Pods().Value(),
		Version: n.Status.NodeInfo.KubeletVersion}
	row.conditions(n.Status.Conditions)
	if n.Spec.Unschedulable {
		row.State += ", takes no new Pods"
		if row.Tone == Good {
			row.Tone = Idle
		}
	}
	if n.DeletionTimestamp != nil {
		row.State, row.Tone = "is being deleted", Busy
	}
	for _, taint := range n.Spec.Taints {
		row.Taints = append(row.Taints, taintText(taint))
	}
	for _, address := range n.Status.Addresses {
		if address.Type == corev1.NodeInternalIP && row.Address == "" {
			row.Address = address.Address
		}
	}
	return row
}

// room is what a node can give of a resource; empty if it does not say.
func room(n *corev1.Node, resource corev1.ResourceName) string {
	amount, says := n.Status.Allocatable[resource]
	if !says {
		return ""
	}
	return amount.String()
}

// conditions adds what the conditions of a node say: Ready is its state, and each other is a problem when true.
func (row *Node) conditions(all []corev1.NodeCondition) {
	for _, c := range all {
		switch {
		case c.Type == corev1.NodeReady:
			row.ready(c)
		case c.Status == corev1.ConditionTrue:
			row.Problems = append(row.Problems, shortened(because(string(c.Type), c.Message)))
		}
	}
	if row.Tone == Good && len(row.Problems) > 0 {
		row.Tone = Bad
	}
}

func (row *Node) ready(c corev1.NodeCondition) {
	row.State, row.Tone = "not ready", Bad
	switch c.Status {
	case corev1.ConditionTrue:
		row.State, row.Tone = "ready", Good
		return
	case corev1.ConditionUnknown:
		row.State = "does not report"
	}
	if why := because(c.Reason, c.Message); why != "" {
		row.Problems = append(row.Problems, shortened(why))
	}
}

// taintText writes a taint as kubectl does: key=value:effect.
func taintText(t corev1.Taint) string {
	var text strings.Builder
	text.WriteString(t.Key)
	if t.Value != "" {
		text.WriteString("=" + t.Value)
	}
	text.WriteString(":" + string(t.Effect))
	return text.String()
}
