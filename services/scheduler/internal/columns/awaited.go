package columns

import (
	"iter"
	"maps"
)

// Awaited returns the nodes for which Pods are nominated that the term selects or that carry it, in no order: only
// there does it matter to a count of the term whether they come.
func (s *State) Awaited(t *Term) iter.Seq[Slot] {
	if t.awaited == nil {
		t.awaited = map[Slot]int32{}
		s.terms.count(t)
		for slot, on := range s.reserved.on {
			for i := range on {
				if t.Selects(on[i].Pod) {
					t.await(slot, 1)
				}
				for _, carried := range s.terms.ofPod[on[i].UID] {
					if carried == t {
						t.await(slot, 1)
					}
				}
			}
		}
	}
	return maps.Keys(t.awaited)
}

// await adds (by 1) or takes back (by -1) a Pod that is nominated for the node.
func (t *Term) await(slot Slot, by int32) {
	if t.awaited != nil {
		bump(t.awaited, slot, by)
	}
}

// await is that of all terms that select the Pod or that it carries.
func (s *State) await(slot Slot, r *Reservation, by int32) {
	for _, t := range s.terms.counting.selecting(r.Pod) {
		t.await(slot, by)
	}
	s.awaitCarried(slot, s.terms.ofPod[r.UID], by)
}

func (s *State) awaitCarried(slot Slot, carried []*Term, by int32) {
	for _, t := range carried {
		if by > 0 {
			s.terms.place(t)
		}
		t.await(slot, by)
	}
}
