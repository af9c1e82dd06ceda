package class

import "keelson.dev/services/scheduler/internal/columns"

// Takers returns the nodes that can take one more Pod of the class, in the order of their slots.
func (c *Class) Takers(s *columns.State) []columns.Slot {
	slots, confined := c.Confined(s)
	if !confined {
		slots = make([]columns.Slot, 0, s.Slots())
		for slot := range columns.Slot(s.Slots()) {
			if s.Known(slot) {
				slots = append(slots, slot)
			}
		}
	}
	takers := slots[:0]
	for _, slot := range slots {
		if c.held[slot] == 0 && c.Refuse(s, s.Node(slot)) == 0 {
			takers = append(takers, slot)
		}
	}
	return takers
}

// BestAmong returns the best of these nodes for one more Pod of the class, judged one by one and as if there were no
// others; false when none of them can take it. A bonus, if there is any, counts beside the scores.
func (c *Class) BestAmong(s *columns.State, slots []columns.Slot, bonus func(columns.Slot) int64) (Choice, bool) {
	var among []candidate
	c.judge.domain.start()
	for _, slot := range slots {
		v := c.whole(s, slot)
		if v.refusal != 0 {
			continue
		}
		c.judge.domain.keepNode(slot)
		one := candidate{raw: c.judge.traits[v.traits], item: newItem(v.rank, slot), nodes: 1}
		if bonus != nil {
			one.bonus = bonus(slot)
		}
		among = append(among, one)
	}
	return c.judge.pick(s, among)
}
