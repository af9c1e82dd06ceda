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
	row := Node{Named: named("Node", n), State: "not ready", Tone: Bad, MostPods: n.Status.Allocatable.Pods().Value(),
		Version: n.Status.NodeInfo.KubeletVersion}
	for resource, amount := range n.Status.Allocatable {
		switch resource {
		case corev1.ResourceCPU:
			row.CPU = amount.String()
		case corev1.ResourceMemory:
			row.Memory = amount.String()
		}
	}
	reported := false
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady:
			reported = true
			row.ready(c)
		case c.Status == corev1.ConditionTrue: // each of the others is a problem when true
			row.Problems = append(row.Problems, shortened(because(string(c.Type), c.Message)))
		}
	}
	if !reported {
		row.State, row.Tone = "has not reported yet", Busy
	}
	if row.Tone == Good && len(row.Problems) > 0 {
		row.Tone = Bad
	}
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

func (row *Node) ready(c corev1.NodeCondition) {
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
