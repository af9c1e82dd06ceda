package cycle

import "keelson.dev/services/scheduler/internal/class"

// WaitingClasses returns how many classes the Pods without a node are of.
func (c *Cycle) WaitingClasses() int {
	ids := map[class.ID]bool{}
	for _, p := range c.pods {
		ids[p.Class] = true
	}
	return len(ids)
}

// KnownClasses returns how many classes are kept, with Pods or without.
func (c *Cycle) KnownClasses() int { return c.classes.Len() }
