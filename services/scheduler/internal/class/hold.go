package class

import "keelson.dev/services/scheduler/internal/columns"

// Hold has these nodes refuse Pods of the class for these reasons, whatever they are like, until it is called again:
// they are held for others. Nothing ends it.
func (c *Class) Hold(s *columns.State, nodes map[columns.Slot]Refusal) {
	before := c.held
	c.held = nil
	if len(nodes) > 0 {
		c.held = make(map[columns.Slot]refusalID, len(nodes))
		for slot, r := range nodes {
			c.held[slot] = refusalID(r)
		}
	}
	if c.index == nil || !c.index.built {
		return
	}
	for slot := range before {
		c.index.update(s, slot)
	}
}

// Refuses reports whether it is known already that the node refuses a Pod of the class, whatever its domains.
func (c *Class) Refuses(s *columns.State, slot columns.Slot) bool {
	return c.Pins() == nil && c.held[slot] == 0 && c.current(s).nodes[slot].refusal() != 0
}

// whole judges a node as it is.
func (c *Class) whole(s *columns.State, slot columns.Slot) verdict {
	v := c.judge.judgeWhole(s, s.Node(slot))
	if held := c.held[slot]; held != 0 {
		v.refusal = held
	}
	return v
}

// hold takes out of the index the nodes that are held.
func (ix *index) hold(nodes map[columns.Slot]refusalID) {
	for slot, r := range nodes {
		if _, ok := ix.nodes[slot].bucket(); ok {
			ix.withdraw(slot)
			ix.refuse(slot, r)
		}
	}
}
