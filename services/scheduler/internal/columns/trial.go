package columns

import "slices"

// Trial is a node as it would be without some of its Pods and reservations, which can be put back one by one. It is
// valid until the State changes, and used again by Start.
type Trial struct {
	state *State
	slot  Slot
	room  Room
	gone  gone
	// across is whether Pods of other nodes may be taken away too.
	across   bool
	expected []Reservation
}

// Start makes the Trial the node as it is.
func (t *Trial) Start(s *State, slot Slot) {
	t.state, t.slot, t.room, t.across = s, slot, s.room[slot], false
	t.gone.beside = t.gone.beside[:0]
	t.gone.pods, t.gone.extended, t.gone.ports = t.gone.pods[:0], t.gone.extended[:0], t.gone.ports[:0]
	t.gone.holders, t.expected = t.gone.holders[:0], t.expected[:0]
}

// Across makes the Trial one of the node among the others: Pods of these may be taken away too, which changes the
// counts of their domains.
func (t *Trial) Across() { t.across = true }

// Here returns the node as Node does, but as if nothing were gone of other nodes. It is valid until the Trial changes.
func (t *Trial) Here() Node {
	n := t.Node()
	n.alone = true
	return n
}

// elsewhere returns the other node that the Pod is on.
func (t *Trial) elsewhere(o *Occupant) (Slot, bool) {
	if !t.across {
		return None, false
	}
	slot := t.state.pods[o.Pod.UID].slot
	return slot, slot != t.slot
}

// Remove takes a Pod away that is on the node.
func (t *Trial) Remove(o *Occupant) {
	if slot, ok := t.elsewhere(o); ok {
		t.gone.beside = append(t.gone.beside, beside{slot: slot, pod: o.Pod.UID})
		return
	}
	t.room.take(o.Usage, -1)
	t.gone.pods, t.gone.holders = append(t.gone.pods, o.Pod.UID), append(t.gone.holders, o.Pod.UID)
	t.gone.add(o.Usage)
}

// Restore puts a Pod back that was taken away.
func (t *Trial) Restore(o *Occupant) {
	if _, ok := t.elsewhere(o); ok {
		t.gone.beside = slices.DeleteFunc(t.gone.beside, func(b beside) bool { return b.pod == o.Pod.UID })
		return
	}
	t.room.take(o.Usage, 1)
	i := slices.Index(t.gone.pods, o.Pod.UID)
	t.gone.pods = slices.Delete(t.gone.pods, i, i+1)
	i = slices.Index(t.gone.holders, o.Pod.UID)
	t.gone.holders = slices.Delete(t.gone.holders, i, i+1)
	for _, a := range o.Usage.Extended {
		i := slices.Index(t.gone.extended, a)
		t.gone.extended = slices.Delete(t.gone.extended, i, i+1)
	}
	for _, p := range o.Usage.Ports {
		i := slices.Index(t.gone.ports, p)
		t.gone.ports = slices.Delete(t.gone.ports, i, i+1)
	}
}

// Release takes room away that is kept on the node.
func (t *Trial) Release(r *Reservation) {
	t.room.take(r.Usage, -1)
	t.gone.holders = append(t.gone.holders, r.UID)
	t.gone.add(r.Usage)
}

// Node returns the node as it would be. It is valid until the Trial changes.
func (t *Trial) Node() Node {
	return Node{state: t.state, slot: t.slot, room: &t.room, gone: &t.gone, expected: t.expected}
}
