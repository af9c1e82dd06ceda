package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/remedy"
)

const (
	// maxNamed is how many nodes of a group an explanation names.
	maxNamed = 3
	// maxGroups is how many groups of nodes it distinguishes.
	maxGroups = 12
)

// named returns the first of the names, which are sorted, and how many more there are.
func named(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// explainNodes says what each rule has against the nodes, those together that are refused alike.
func explainNodes(report remedy.Report, nodes int) []Fact {
	var facts []Fact
	for i, g := range report.Groups {
		if i == maxGroups {
			rest := 0
			for _, g := range report.Groups[i:] {
				rest += len(g.Nodes)
			}
			return append(facts, Fact{Reason: "Nodes", Message: fmt.Sprintf("%d of %d in %d more groups", rest, nodes,
				len(report.Groups)-i)})
		}
		says := "can take the Pod"
		if len(g.Findings) > 0 {
			parts := make([]string, 0, len(g.Findings))
			for _, f := range g.Findings {
				parts = append(parts, f.Rule+": "+f.Text)
			}
			says = strings.Join(parts, "; ")
		}
		facts = append(facts, Fact{Reason: "Nodes", Message: fmt.Sprintf("%d of %d: %s (%s)", len(g.Nodes), nodes, says,
			named(g.Nodes))})
	}
	return facts
}

// explainOutlook says what it would come to on each node to take the room of Pods of lower priority.
func (c *Cycle) explainOutlook(p *pod) []Fact {
	say := func(format string, args ...any) []Fact {
		return []Fact{{Reason: "Preemption", Message: fmt.Sprintf(format, args...)}}
	}
	switch {
	case c.state.Nodes() == 0:
		return nil
	case !p.profile.Preempts:
		return say("profile %s takes nobody's room", p.profile.Name)
	case never(p.object):
		return say("the Pod takes nobody's room: its preemptionPolicy is Never")
	}
	asks := preempt.Preemptor{UID: p.UID, Class: p.class, Priority: p.Priority}
	byWhy := map[string][]string{}
	c.nominations.search.Outlook(asks, func(slot columns.Slot, why string) {
		byWhy[why] = append(byWhy[why], c.state.Name(slot))
	})
	whys := slices.SortedFunc(maps.Keys(byWhy), func(a, b string) int {
		return cmp.Or(len(byWhy[b])-len(byWhy[a]), strings.Compare(a, b))
	})
	var facts []Fact
	if helpful := byWhy[""]; len(helpful) > 0 {
		facts = c.explainPlan(asks, helpful)
	} else if p.profile.PreemptsAcross {
		facts = c.explainAcross(asks)
	}
	for _, why := range whys {
		if names := byWhy[why]; why != "" {
			slices.Sort(names)
			facts = append(facts, say("%d of %d: %s (%s)", len(names), c.state.Nodes(), why, named(names))...)
		}
	}
	return facts
}

// explainPlan says who would go.
func (c *Cycle) explainPlan(asks preempt.Preemptor, helpful []string) []Fact {
	slices.Sort(helpful)
	facts := []Fact{{Reason: "Preemption",
		Message: fmt.Sprintf("%d of %d have room without Pods of lower priority (%s)",
			len(helpful), c.state.Nodes(), named(helpful))}}
	plan, _ := c.nominations.search.Find(asks)
	if plan == nil {
		return facts
	}
	return append(facts, Fact{Reason: "Preemption", Message: "cheapest on " + c.planText(plan)})
}

// explainAcross says who would go where Pods on other nodes may be victims too, and what was not looked at.
func (c *Cycle) explainAcross(asks preempt.Preemptor) (facts []Fact) {
	plan, untried := c.nominations.search.FindAcross(asks)
	if plan != nil {
		facts = append(facts, Fact{Reason: "Preemption", Message: "across nodes, cheapest on " + c.planText(plan)})
	}
	if untried > 0 {
		facts = append(facts, Fact{Reason: "Preemption", Message: fmt.Sprintf(
			"%d of %d: not tried across nodes, as too many Pods count in their domains", untried, c.state.Nodes())})
	}
	return facts
}

// planText says where the plan has room, and without which Pods.
func (c *Cycle) planText(plan *preempt.Plan) string {
	victims := make([]string, 0, len(plan.Victims))
	for _, v := range plan.Victims {
		victims = append(victims, fmt.Sprintf("%s/%s (priority %d)", v.Namespace, v.Name, columns.Priority(v)))
	}
	slices.Sort(victims)
	text := fmt.Sprintf("%s, without %s", c.state.Name(plan.Slot), named(victims))
	if len(victims) == 0 {
		text = fmt.Sprintf("%s, once Pods that leave it already are gone", c.state.Name(plan.Slot))
	}
	if plan.Violations > 0 {
		text += fmt.Sprintf("; a PodDisruptionBudget forbids it for %d of them", plan.Violations)
	}
	return text
}

// explainChanges says what would make the Pod fit.
func explainChanges(changes []remedy.Change) []Fact {
	facts := make([]Fact, 0, len(changes))
	for _, change := range changes {
		text := fmt.Sprintf("%s: the Pod fits on %s", change, named(change.Fits))
		facts = append(facts, Fact{Reason: "WouldFit", Message: text})
	}
	return facts
}

// Remedies returns what would make a Pod without a node fit; nothing where a node can take it.
func (c *Cycle) Remedies(uid types.UID) []remedy.Change {
	p := c.pods[uid]
	if p == nil || p.placed() {
		return nil
	}
	return c.survey(p).Changes
}

// survey says what speaks against each node for a Pod without a node, and what would help.
func (c *Cycle) survey(p *pod) remedy.Report {
	c.classification.heed(p)
	return remedy.Survey(c.state, remedy.Subject{Profile: p.profile, Pod: p.class.Pod, UID: p.UID})
}
