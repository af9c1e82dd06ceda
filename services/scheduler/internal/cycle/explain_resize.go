package cycle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/remedy"
)

// A node that cannot give a Pod the size that it requests says so in the condition PodResizePending. The scheduler has
// no say in that, and preempts no Pod for it, but knows what else is on the node.

// watchResize notes whether the node of a Pod put off a resize.
func (c *Cycle) watchResize(p *corev1.Pod) {
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	if putOff(p) != nil {
		c.resizes[name] = p
	} else {
		c.forgetResize(p)
	}
}

func (c *Cycle) forgetResize(p *corev1.Pod) {
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	if known := c.resizes[name]; known != nil && known.UID == p.UID {
		delete(c.resizes, name)
	}
}

func putOff(p *corev1.Pod) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}

// lack is what a node lacks of a resource for a Pod to have the size that it asks for.
type lack struct {
	name                      corev1.ResourceName
	resource                  columns.Resource
	has, asks, others, offers int64
}

func (l *lack) missing() int64 { return max(0, l.asks+l.others-l.offers) }

// amount writes a number of the resource as the API does.
func (l *lack) amount(n int64) string {
	q := (&remedy.Less{Name: l.name, Amount: n}).Quantity()
	return q.String()
}

// explainResize says what keeps a Pod from the size that it asks for, and what would end that.
func (c *Cycle) explainResize(p *corev1.Pod) Explanation {
	said, node := putOff(p), p.Spec.NodeName
	out := Explanation{Summary: fmt.Sprintf("has node %s, whose answer to its resize is %s: %s", node, said.Reason,
		said.Message)}
	say := func(reason, format string, args ...any) {
		out.Facts = append(out.Facts, Fact{Time: said.LastTransitionTime.Time, Reason: reason,
			Message: fmt.Sprintf(format, args...)})
	}
	slot := c.state.Slot(node)
	if slot == columns.None || !c.state.Known(slot) {
		say("Resize", "node %s is gone", node)
		return out
	}
	var less remedy.Change
	var lacks []lack
	never := false
	for _, l := range c.lacks(p, slot) {
		if l.asks <= l.has {
			continue
		}
		text := "which is enough"
		if l.missing() > 0 {
			text = l.amount(l.missing()) + " is missing"
			less.Less = append(less.Less, remedy.Less{Name: l.name, Amount: l.missing()})
			lacks, never = append(lacks, l), never || l.asks > l.offers
		}
		say("Resize", "%s: it has %s and asks for %s; node %s offers %s, of which others have %s: %s", l.name,
			l.amount(l.has), l.amount(l.asks), node, l.amount(l.offers), l.amount(l.others), text)
	}
	say("Preemption", "nobody's room is taken for a resize")
	switch {
	case len(lacks) == 0 && said.Reason == corev1.PodReasonDeferred:
		say("WouldFit", "node %s has room for it by now, and is yet to say so", node)
		return out
	case len(lacks) == 0:
		return out
	case never:
		say("WouldFit", "never on node %s, whoever leaves it: a Pod made anew may have this size on another", node)
	default:
		say("WouldFit", "once other Pods of node %s end or shrink: %s", node, c.sufficing(p, slot, lacks))
	}
	say("WouldFit", "%s than it asks for: node %s has that for it", less, node)
	return out
}

// lacks returns what the Pod has, asks for and could have on its node, of what a resize may change.
func (c *Cycle) lacks(p *corev1.Pod, slot columns.Slot) []lack {
	asks := *p
	asks.Status = corev1.PodStatus{}
	out := []lack{{name: corev1.ResourceCPU, resource: columns.CPU},
		{name: corev1.ResourceMemory, resource: columns.Memory}}
	for i := range out {
		l := &out[i]
		l.has, l.asks = c.allocated(p).Basic[l.resource], c.state.Usage(&asks).Basic[l.resource]
		l.offers = c.state.Node(slot).Allocatable(l.resource)
		for _, o := range c.state.Occupants(slot) {
			if o.Pod.UID != p.UID {
				l.others += c.allocated(o.Pod).Basic[l.resource]
			}
		}
	}
	return out
}

// allocated returns what a Pod has of its node, whatever it requests while its resize is deferred or infeasible.
func (c *Cycle) allocated(p *corev1.Pod) *columns.Usage {
	if putOff(p) == nil {
		return c.state.Usage(p)
	}
	has := *p
	has.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonInfeasible}} // of which the API counts what the Pod has
	return c.state.Usage(&has)
}

// sufficing names the other Pods on the node each of which has as much as is missing, the least important first.
func (c *Cycle) sufficing(p *corev1.Pod, slot columns.Slot, lacks []lack) string {
	var names []string
	for _, o := range slices.Backward(c.state.Occupants(slot)) {
		enough := !slices.ContainsFunc(lacks, func(l lack) bool {
			return c.allocated(o.Pod).Basic[l.resource] < l.missing()
		})
		if enough && o.Pod.UID != p.UID {
			names = append(names, fmt.Sprintf("%s/%s (priority %d)", o.Pod.Namespace, o.Pod.Name, o.Priority))
		}
	}
	if len(names) == 0 {
		return "no single one of them has enough"
	}
	return "any of " + named(names) + " would do"
}
