package cycle

import (
	"keelson.dev/services/scheduler/internal/gang"
)

// tally counts the Pods of a group to which the API shows no node.
type tally struct {
	gang.Count
	evicting int // how many of them wait for evictions
}

func (t *tally) add(o tally, by int) {
	t.Placed, t.Waiting, t.Gated = t.Placed+by*o.Placed, t.Waiting+by*o.Waiting, t.Gated+by*o.Gated
	t.evicting += by * o.evicting
}

// recount has the group count the Pod as it is now.
func (p *pod) recount() {
	if p.gang == nil {
		return
	}
	var now tally
	switch p.phase {
	case assumed, claiming:
		now.Placed = 1
	case gated:
		now.Gated = 1
	case evicting:
		now.Waiting, now.evicting = 1, 1
	default:
		now.Waiting = 1
	}
	p.gang.add(p.counted, -1)
	p.gang.add(now, 1)
	p.counted = now
}
