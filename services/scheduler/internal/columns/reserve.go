package columns

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reservation is room that is kept on a node for a Pod that is nominated for it.
type Reservation struct {
	UID      types.UID
	Pod      *corev1.Pod
	Usage    *Usage
	Priority int32
}

// reservations are in the rooms of their nodes and in no domain: a Pod that waits for its victims runs nowhere yet. A
// Pod that must leave it its place has it counted by Expect.
type reservations struct {
	slots map[types.UID]Slot
	on    map[Slot][]Reservation
	ranks map[int32]int // how many there are, by priority
}

func newReservations() reservations {
	return reservations{slots: map[types.UID]Slot{}, on: map[Slot][]Reservation{}, ranks: map[int32]int{}}
}

// Reserve keeps room on the node for the Pod, and none on another any more.
func (s *State) Reserve(node string, r Reservation) {
	if slot, ok := s.reserved.slots[r.UID]; ok {
		if s.names[slot] == node && s.keep(slot, r) {
			return
		}
		s.Unreserve(r.UID, true)
	}
	slot := s.ensure(node)
	s.reserved.slots[r.UID] = slot
	s.reserved.on[slot] = append(s.reserved.on[slot], r)
	s.reserved.ranks[r.Priority]++
	s.identity[slot].pods++
	s.take(slot, r.Usage, 1)
	s.holdVolumes(slot, r.UID)
	s.await(slot, &r, 1)
	s.journal.note(slot, false)
}

// keep takes over the newest version of a Pod for which the same room is kept on the node already, and reports whether
// that is so.
func (s *State) keep(slot Slot, r Reservation) bool {
	on := s.reserved.on[slot]
	i := slices.IndexFunc(on, func(o Reservation) bool { return o.UID == r.UID })
	if on[i].Usage != r.Usage || on[i].Priority != r.Priority {
		return false
	}
	if !maps.Equal(on[i].Pod.Labels, r.Pod.Labels) {
		s.await(slot, &on[i], -1)
		s.await(slot, &r, 1)
		s.journal.note(slot, true)
	}
	on[i].Pod = r.Pod
	return true
}

// Unreserve gives up the room that was kept for the Pod. It is no gain for others where the Pod takes it now.
func (s *State) Unreserve(uid types.UID, gain bool) {
	slot, ok := s.reserved.slots[uid]
	if !ok {
		return
	}
	on := s.reserved.on[slot]
	i := slices.IndexFunc(on, func(r Reservation) bool { return r.UID == uid })
	usage, priority := on[i].Usage, on[i].Priority
	s.await(slot, &on[i], -1)
	delete(s.reserved.slots, uid)
	if s.reserved.ranks[priority]--; s.reserved.ranks[priority] == 0 {
		delete(s.reserved.ranks, priority)
	}
	if s.reserved.on[slot] = slices.Delete(on, i, i+1); len(on) == 1 {
		delete(s.reserved.on, slot)
	}
	s.identity[slot].pods--
	s.take(slot, usage, -1)
	s.attached.release(slot, uid)
	s.journal.note(slot, gain)
	s.discard(slot)
}

// ReservedFor returns the node on which room is kept for the Pod, None when there is no such node.
func (s *State) ReservedFor(uid types.UID) Slot {
	if slot, ok := s.reserved.slots[uid]; ok {
		return slot
	}
	return None
}

// Reservations returns the room that is kept on the node. The caller must not change it; it is valid until the State
// changes.
func (s *State) Reservations(slot Slot) []Reservation { return s.reserved.on[slot] }

// ReservedBelow returns the nodes on which room is kept for a Pod of lower priority, in the order of their slots:
// extenders are asked about them in this order.
func (s *State) ReservedBelow(priority int32) []Slot {
	below := false
	for rank := range s.reserved.ranks {
		below = below || rank < priority
	}
	if !below {
		return nil
	}
	var slots []Slot
	for slot, on := range s.reserved.on {
		if slices.ContainsFunc(on, func(r Reservation) bool { return r.Priority < priority }) {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	return slots
}
