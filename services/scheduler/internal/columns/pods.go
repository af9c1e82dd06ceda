package columns

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// pods are the Pods that take room, in one list, linked by node.
type pods struct {
	byUID map[types.UID]podRef
	list  []placed
	free  podRef // of the entries that hold no Pod, linked by next
}

// podRef is 1 + an index of pods.list; 0 is none.
type podRef int32

// placed is a Pod that takes room on a node.
type placed struct {
	uid            types.UID
	usage          *Usage
	slot           Slot
	previous, next podRef // on the same node
}

func newPods() pods { return pods{byUID: map[types.UID]podRef{}} }

func (t *pods) at(ref podRef) *placed { return &t.list[ref-1] }

// add keeps the Pod in front of those that begin with first, and returns it.
func (t *pods) add(p placed, first podRef) podRef {
	ref := t.free
	if ref != 0 {
		t.free = t.at(ref).next
	} else {
		t.list = append(t.list, placed{})
		ref = podRef(len(t.list))
	}
	p.next = first
	*t.at(ref) = p
	if first != 0 {
		t.at(first).previous = ref
	}
	t.byUID[p.uid] = ref
	return ref
}

// remove takes the Pod out and returns the first of its node's Pods, which was first before.
func (t *pods) remove(ref, first podRef) podRef {
	p := t.at(ref)
	if p.next != 0 {
		t.at(p.next).previous = p.previous
	}
	if p.previous != 0 {
		t.at(p.previous).next = p.next
	} else {
		first = p.next
	}
	delete(t.byUID, p.uid)
	*p = placed{next: t.free}
	t.free = ref
	return first
}

// Pods returns how many Pods take room.
func (s *State) Pods() int { return len(s.pods.byUID) }

// PodsOn returns the Pods that take room on the node, and what each takes.
func (s *State) PodsOn(slot Slot) iter.Seq2[types.UID, *Usage] {
	return func(yield func(types.UID, *Usage) bool) {
		for ref := s.identity[slot].first; ref != 0; {
			p := s.pods.at(ref)
			if !yield(p.uid, p.usage) {
				return
			}
			ref = p.next
		}
	}
}

// PodNode returns the node on which the Pod takes room.
func (s *State) PodNode(uid types.UID) (string, bool) {
	ref, ok := s.pods.byUID[uid]
	if !ok {
		return "", false
	}
	return s.names[s.pods.at(ref).slot], true
}

// SetPod notes that the Pod takes room on the node, and no longer on another. To repeat it changes nothing.
func (s *State) SetPod(uid types.UID, node string, u *Usage) {
	if ref, ok := s.pods.byUID[uid]; ok {
		if p := s.pods.at(ref); p.usage == u && s.names[p.slot] == node {
			return
		}
		s.RemovePod(uid)
	}
	slot := s.ensure(node)
	id := &s.identity[slot]
	id.first = s.pods.add(placed{uid: uid, usage: u, slot: slot}, id.first)
	s.take(slot, u, 1)
	s.journal.note(slot, false)
}

// RemovePod gives the Pod's room back.
func (s *State) RemovePod(uid types.UID) {
	ref, ok := s.pods.byUID[uid]
	if !ok {
		return
	}
	p := *s.pods.at(ref)
	id := &s.identity[p.slot]
	id.first = s.pods.remove(ref, id.first)
	s.take(p.slot, p.usage, -1)
	s.journal.note(p.slot, true)
	s.discard(p.slot)
}
