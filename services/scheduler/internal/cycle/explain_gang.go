package cycle

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/gang"
	"keelson.dev/services/scheduler/internal/queue"
)

// ExplainGroup says where a PodGroup stands; false when neither it nor a Pod that names it is there.
func (c *Cycle) ExplainGroup(name types.NamespacedName) (Explanation, bool) {
	g := c.gangs.byName[name]
	if g == nil {
		return Explanation{}, false
	}
	n := g.count()
	out := Explanation{Summary: c.groupSummary(g, n)}
	place, since, retryAt := g.Place()
	if place != queue.Nowhere {
		out.Facts = append(out.Facts, Fact{Time: since, Reason: "Queued", Message: fmt.Sprintf(
			"priority %d, %d failed tries, %s", g.Priority, g.Attempts, place)})
		out.Facts = append(out.Facts, endsWith(place, since, retryAt))
	}
	out.Facts = append(out.Facts, Fact{Reason: "Pods", Message: fmt.Sprintf(
		"%d have a node, %d wait for one, %d are held by scheduling gates", n.Placed, n.Waiting, n.Gated)})
	if g.group != nil {
		out.Facts = append(out.Facts, Fact{Reason: "Policy", Message: policyOf(g.group)})
	}
	out.Facts = append(out.Facts, c.explainMembers(g)...)
	return out, true
}

func (c *Cycle) explainMembers(g *gangState) (facts []Fact) {
	members := g.members()
	for i, p := range members {
		if i == maxExplainedMembers {
			return append(facts, Fact{Reason: "Pod", Message: fmt.Sprintf("and %d more", len(members)-i)})
		}
		where := "fits nowhere now"
		if n := p.class.Feasible(c.state); n > 0 {
			where = fmt.Sprintf("alone would fit on %d of %d nodes", n, c.state.Nodes())
		}
		if p.nominated != "" {
			where += ", room is kept for it on node " + p.nominated
		}
		facts = append(facts, Fact{Reason: "Pod", Message: p.object.Name + ": " + where})
	}
	return facts
}

// maxExplainedMembers bounds the Pods that an explanation of a group names.
const maxExplainedMembers = 50

func (c *Cycle) groupSummary(g *gangState, n gang.Count) string {
	held := gang.Held(g.group, g.name, n)
	place, _, _ := g.Place()
	switch {
	case n.Waiting == 0 && n.Gated == 0 && n.Placed > 0:
		return fmt.Sprintf("all %d pods have a node", n.Placed)
	case n.Waiting+n.Gated+n.Placed == 0:
		return "has no pods"
	case held != "":
		return held
	case g.evicting > 0:
		return "waits for victims to be evicted"
	case place == queue.Active:
		return "waits for its turn"
	case g.refused != "":
		return g.refused
	case place == queue.Backoff, place == queue.Unschedulable:
		return "waits to be tried again"
	case g.profile != nil && !c.leading[g.profile.Name]:
		return "another replica of the scheduler leads profile " + g.profile.Name
	}
	return fmt.Sprintf("%d pods have a node, %d wait for one", n.Placed, n.Waiting)
}

// endsWith says when a group is tried again at the latest.
func endsWith(place queue.Place, since, retryAt time.Time) Fact {
	switch place {
	case queue.Backoff:
		return Fact{Time: retryAt, Reason: "Retry", Message: "is tried again then"}
	case queue.Unschedulable:
		return Fact{Time: since.Add(queue.MaxUnschedulable), Reason: "Retry",
			Message: "is tried again when a node has more room, and then at the latest"}
	}
	return Fact{Time: since, Reason: "Retry", Message: "is tried next but for what is more urgent"}
}

func policyOf(g *gang.Group) string {
	text := fmt.Sprintf("at least %d pods are scheduled together", g.Least)
	if g.Object.Spec.SchedulingPolicy.Gang == nil {
		text = "as many pods as fit are scheduled"
	}
	if g.Topology != "" {
		text += ", all on nodes of one value of label " + g.Topology
	}
	if g.Together {
		text += "; they are evicted together"
	}
	return text
}

// explainMember says where a Pod of a group stands.
func (c *Cycle) explainMember(p *pod) Explanation {
	group, _ := c.ExplainGroup(p.gang.name)
	out := Explanation{Summary: "in pod group " + p.gang.name.Name + ": " + group.Summary}
	out.Facts = append(out.Facts, explainPreemption(p.last)...)
	out.Facts = append(out.Facts, c.explainUnmade(p)...)
	out.Facts = slices.Concat(out.Facts, group.Facts)
	return out
}
