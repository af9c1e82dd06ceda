package cycle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/remedy"
)

// WaitingClasses returns how many classes the Pods without a node are of, once they have heeded each other.
func (c *Cycle) WaitingClasses() int {
	ids := map[class.ID]bool{}
	for _, p := range c.pods {
		c.classification.heed(p)
		ids[p.Class] = true
	}
	return len(ids)
}

// KnownClasses returns how many classes are kept, with Pods or without.
func (c *Cycle) KnownClasses() int { return c.classes.Len() }

// Survey returns what speaks against each node for a Pod without a node, and what would help.
func (c *Cycle) Survey(uid types.UID) remedy.Report {
	return c.survey(c.pods[uid])
}

// BoundAcross bounds the work of a preemption across nodes.
func (c *Cycle) BoundAcross(work int) { c.nominations.search.MaxAcross = work }

// Miscounted returns the groups that count their Pods wrongly, and how.
func (c *Cycle) Miscounted() (wrong []string) {
	for name, g := range c.gangs.byName {
		var want tally
		for _, p := range g.waiting {
			switch {
			case p.node != "":
				want.Placed++
			case isGated(p.object) && p.phase == gated:
				want.Gated++
			default:
				want.Waiting++
			}
			if p.phase == evicting {
				want.evicting++
			}
		}
		if g.tally != want {
			wrong = append(wrong, fmt.Sprintf("%s counts %+v, has %+v", name, g.tally, want))
		}
	}
	return wrong
}

// Check ends the program where what is known of a Pod is not what its phase says. It needs -tags invariants.
func (c *Cycle) Check() { c.check() }
