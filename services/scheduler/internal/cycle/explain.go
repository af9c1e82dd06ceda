package cycle

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/queue"
)

// Explanation says where a Pod stands and why.
type Explanation struct {
	Summary string
	Facts   []Fact
}

// Fact is one thing that is known.
type Fact struct {
	Time    time.Time
	Reason  string
	Message string
}

// Explain says where a Pod stands that has no node, or whose node put off its resize; false for any other, and when it
// is none of ours.
func (c *Cycle) Explain(name types.NamespacedName) (Explanation, bool) {
	if p := c.resizes[name]; p != nil {
		return c.explainResize(p), true
	}
	p := c.pods[c.byName[name]]
	if p == nil {
		return Explanation{}, false
	}
	switch p.phase {
	case gated:
		gates := make([]string, 0, len(p.object.Spec.SchedulingGates))
		for _, g := range p.object.Spec.SchedulingGates {
			gates = append(gates, g.Name)
		}
		return Explanation{Summary: "held by scheduling gates: " + strings.Join(gates, ", ")}, true
	case claiming:
		return c.explainClaims(p), true
	case assumed:
		return Explanation{Summary: "given node " + p.node + ", which the API does not show yet"}, true
	case evicting:
		return Explanation{Summary: "waits for victims to be evicted on node " + p.nominated,
			Facts: explainPreemption(p.last)}, true
	case asking:
		return Explanation{Summary: "waits for the answer of an extender"}, true
	}
	if p.gang != nil {
		return c.explainMember(p), true
	}
	place, since, retryAt := p.Place()
	out := Explanation{Summary: summary(place, p)}
	out.Facts = append(out.Facts, Fact{Time: since, Reason: "Queued", Message: fmt.Sprintf(
		"priority %d, %d failed tries, %s", p.Priority, p.Attempts, place)})
	if place == queue.Backoff {
		out.Facts = append(out.Facts, Fact{Time: retryAt, Reason: "Retry", Message: "is tried again then"})
	}
	if p.last != nil && p.last.Node == "" {
		out.Facts = append(out.Facts, Fact{Time: since, Reason: corev1.PodReasonUnschedulable,
			Message: p.last.Message()})
	}
	out.Facts = append(out.Facts, explainVain(p, since)...)
	out.Facts = append(out.Facts, explainPreemption(p.last)...)
	out.Facts = append(out.Facts, c.explainUnmade(p)...)
	report := c.survey(p)
	out.Facts = append(out.Facts, explainNodes(report, c.state.Nodes())...)
	if !report.Feasible() {
		out.Facts = append(out.Facts, c.explainOutlook(p)...)
		out.Facts = append(out.Facts, explainChanges(report.Changes)...)
	}
	return out, true
}

func summary(place queue.Place, p *pod) string {
	switch place {
	case queue.Active:
		return "waits for its turn"
	case queue.Backoff:
		if p.last != nil && p.last.Vain != "" {
			return fmt.Sprintf("waits to be tried again: on node %s it waited for its claims in vain: %s", p.last.Node,
				p.last.Vain)
		}
		return "waits to be tried again"
	case queue.Held:
		return "waits until an extender has answered about another Pod"
	case queue.Unschedulable:
		return "fits on no node: " + p.last.Message()
	default:
		return "another replica of the scheduler leads profile " + p.profile.Name
	}
}

// Depths returns how many Pods are in each place, and since when the first of them waits there.
func (c *Cycle) Depths() map[queue.Place]Depth {
	out := map[queue.Place]Depth{}
	for _, place := range []queue.Place{queue.Active, queue.Backoff, queue.Held, queue.Unschedulable} {
		n, oldest := c.queue.Depth(place)
		out[place] = Depth{Pods: n, Oldest: oldest}
	}
	held := Depth{}
	for _, p := range c.pods {
		if p.phase == gated {
			held.Pods++
		}
	}
	out[Gated] = held
	return out
}

// Moves returns how Pods and groups have come to their places, and how often.
func (c *Cycle) Moves() map[queue.Move]uint64 { return c.queue.Moves() }

// Gated is the place of Pods that their scheduling gates hold.
const Gated queue.Place = "gated"

// Depth is the fill of one place.
type Depth struct {
	Pods   int
	Oldest time.Time
}
