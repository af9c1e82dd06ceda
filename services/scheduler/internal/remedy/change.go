package remedy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Change is what could be done so that a Pod fits: to the Pod, to one node, or to both.
type Change struct {
	// Less is how much less the Pod would ask of each resource, all of its containers together.
	Less []Less
	// Ports are the host ports that the Pod would do without.
	Ports []columns.Port
	// Tolerations are those that the Pod would have more.
	Tolerations []corev1.Toleration
	// Labels are those of the node that would be others, and Uncordon whether spec.unschedulable and its taint would
	// go.
	Labels   []Label
	Uncordon bool
	// Node is the node that would be changed; empty when none would.
	Node string
	// Fits are the nodes that could take the Pod then, sorted.
	Fits []string

	share float64 // of what the Pod asks for, that Less takes away
}

// Less is an amount of a resource, of CPU in thousandths.
type Less struct {
	Name   corev1.ResourceName
	Amount int64
	asked  int64
}

// Label is one label of a node: to be set, or to be taken away.
type Label struct {
	Key, Value string
	Gone       bool
}

// Quantity returns the amount as the API writes it.
func (l Less) Quantity() resource.Quantity {
	switch l.Name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(l.Amount, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(l.Amount, resource.BinarySI)
	}
	return *resource.NewQuantity(l.Amount, resource.DecimalSI)
}

// String says what would be done.
func (c Change) String() string {
	var parts []string
	for _, l := range c.Less {
		q := l.Quantity()
		if l.Amount == l.asked {
			parts = append(parts, fmt.Sprintf("no request of %s, which is %s now", l.Name, q.String()))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s less %s", q.String(), l.Name))
	}
	for _, p := range c.Ports {
		parts = append(parts, fmt.Sprintf("without host port %d/%s", p.Number, p.Protocol))
	}
	for _, t := range c.Tolerations {
		parts = append(parts, "toleration "+taintText(t))
	}
	for _, l := range c.Labels {
		if l.Gone {
			parts = append(parts, fmt.Sprintf("no label %s on node %s", l.Key, c.Node))
			continue
		}
		parts = append(parts, fmt.Sprintf("label %s=%s on node %s", l.Key, l.Value, c.Node))
	}
	if c.Uncordon {
		parts = append(parts, fmt.Sprintf("node %s uncordoned", c.Node))
	}
	return strings.Join(parts, " and ")
}

// taintText is how `kubectl taint` writes it.
func taintText(t corev1.Toleration) string {
	if t.Operator == corev1.TolerationOpExists {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// kind returns what would be changed, sorted: changes of one kind differ by how much.
func (c *Change) kind() []string {
	var out []string
	for _, l := range c.Less {
		out = append(out, string(l.Name))
	}
	note := func(is bool, what string) {
		if is {
			out = append(out, " "+what) // no name of a resource begins so
		}
	}
	note(len(c.Ports) > 0, "ports")
	note(len(c.Tolerations) > 0, "tolerations")
	note(len(c.Labels) > 0, "labels")
	note(c.Uncordon, "uncordon")
	slices.Sort(out)
	return out
}

// edits counts what would be changed, amounts aside.
func (c *Change) edits() int {
	n := len(c.Ports) + len(c.Tolerations) + len(c.Labels)
	if c.Uncordon {
		n++
	}
	return n
}

// smaller orders changes of one kind, the smallest first.
func smaller(a, b *Change) bool {
	if ea, eb := a.edits(), b.edits(); ea != eb {
		return ea < eb
	}
	return a.share < b.share
}

// same reports whether both are one change of the Pod, or of the same node.
func (c *Change) same(o *Change) bool {
	return c.Node == o.Node && c.Uncordon == o.Uncordon && slices.Equal(c.Less, o.Less) &&
		slices.Equal(c.Ports, o.Ports) && slices.Equal(c.Tolerations, o.Tolerations) && slices.Equal(c.Labels, o.Labels)
}

// subject returns the Pod with the change.
func (c *Change) subject(sub Subject) Subject {
	usage := *sub.Pod.Usage
	usage.Extended = slices.Clone(usage.Extended)
	for _, l := range c.Less {
		if at := amountOf(&usage, l.Name); at != nil {
			*at -= l.Amount
		}
	}
	usage.Extended = slices.DeleteFunc(usage.Extended, func(a columns.Amount) bool { return a.Value == 0 })
	usage.Ports = slices.DeleteFunc(slices.Clone(usage.Ports), func(p columns.Port) bool {
		return slices.Contains(c.Ports, p)
	})
	spec := *sub.Pod.Spec
	spec.Tolerations = slices.Concat(spec.Tolerations, c.Tolerations)
	sub.Pod = rules.Pod{Namespace: sub.Pod.Namespace, Spec: &spec, Usage: &usage, Terms: sub.Pod.Terms,
		SelectedBy: sub.Pod.SelectedBy, Volumes: sub.Pod.Volumes}
	return sub
}

// amountOf returns where a usage says how much it takes of a resource; nil where it takes none.
func amountOf(u *columns.Usage, name corev1.ResourceName) *int64 {
	for r, basic := range columns.BasicNames {
		if basic == name {
			return &u.Basic[r]
		}
	}
	for i := range u.Extended {
		if u.Extended[i].Name == name {
			return &u.Extended[i].Value
		}
	}
	return nil
}

// view returns the node with the change.
func (c *Change) view(v columns.View) columns.View {
	labels := maps.Clone(v.Node().Labels)
	for _, l := range c.Labels {
		if l.Gone {
			delete(labels, l.Key)
		} else {
			labels[l.Key] = l.Value
		}
	}
	taints := v.Taints
	if c.Uncordon {
		taints = slices.DeleteFunc(slices.Clone(taints), ofCordon)
	}
	return v.As(labels, taints, v.Unschedulable && !c.Uncordon)
}

// ofCordon reports whether a taint comes and goes with spec.unschedulable.
func ofCordon(t corev1.Taint) bool {
	return t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule
}
