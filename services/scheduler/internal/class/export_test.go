package class

import "keelson.dev/services/scheduler/internal/columns"

// Buckets returns how many buckets of nodes the class keeps, empty ones included.
func (c *Class) Buckets() int { return len(c.index.buckets) }

// Scores returns the score of each node that can take one more Pod of the class, by slot.
func (c *Class) Scores(s *columns.State) map[columns.Slot]int64 {
	j := &c.judge
	j.domain.acquire(s)
	j.domain.start()
	var among []candidate
	for slot := range columns.Slot(s.Slots()) {
		if !s.Known(slot) {
			continue
		}
		if v := j.judgeWhole(s, s.Node(slot)); v.refusal == 0 {
			j.domain.keepNode(slot)
			among = append(among, candidate{raw: j.traits[v.traits], item: newItem(v.rank, slot), nodes: 1})
		}
	}
	scores := map[columns.Slot]int64{}
	j.rate(s, among)
	j.extremes(among)
	for _, c := range among {
		score := rankScore(c.item.rank())
		for t, shared := range j.shared {
			if c.raw[t] != unrated {
				score += shared.Weight * shared.Order.Normalize(c.raw[t], j.least[t], j.greatest[t])
			}
		}
		scores[c.item.slot] = score
	}
	return scores
}
