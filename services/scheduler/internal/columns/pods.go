package columns

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// placement is where a Pod takes room, and what it takes.
type placement struct {
	slot  Slot
	usage *Usage
	pod   *corev1.Pod
}

// Pods returns how many Pods take room.
func (s *State) Pods() int { return len(s.pods) }

// PodsOn returns the Pods that take room on the node, and what each takes. The first call lists the Pods of every node,
// and the lists are kept from then on: without a call, they cost nothing.
func (s *State) PodsOn(slot Slot) iter.Seq2[types.UID, *Usage] {
	s.listOccupants()
	return func(yield func(types.UID, *Usage) bool) {
		for i := range s.podsOn[slot] {
			o := &s.podsOn[slot][i]
			if !yield(o.Pod.UID, o.Usage) {
				return
			}
		}
	}
}

// PodNode returns the node on which the Pod takes room.
func (s *State) PodNode(uid types.UID) (string, bool) {
	at, ok := s.pods[uid]
	if !ok {
		return "", false
	}
	return s.names[at.slot], true
}

// SetPod notes that the Pod takes room on the node, and no longer on another. To repeat it changes nothing. The object
// must not change afterwards.
func (s *State) SetPod(p *corev1.Pod, node string, u *Usage) {
	if at, ok := s.pods[p.UID]; ok {
		if at.usage == u && s.names[at.slot] == node {
			s.pods[p.UID] = placement{slot: at.slot, usage: u, pod: p}
			s.replaceOccupant(at, p)
			s.recount(at.slot, at.pod, p)
			return
		}
		s.RemovePod(p.UID)
	}
	slot := s.ensure(node)
	s.pods[p.UID] = placement{slot: slot, usage: u, pod: p}
	s.identity[slot].pods++
	s.addOccupant(slot, p, u)
	s.take(slot, u, 1)
	gain := s.holdVolumes(slot, p.UID)
	s.countPod(slot, p, 1)
	s.journal.note(slot, gain)
}

// RemovePod gives the Pod's room back.
func (s *State) RemovePod(uid types.UID) {
	at, ok := s.pods[uid]
	if !ok {
		return
	}
	delete(s.pods, uid)
	s.identity[at.slot].pods--
	s.removeOccupant(at)
	s.take(at.slot, at.usage, -1)
	s.attached.release(at.slot, uid)
	s.countPod(at.slot, at.pod, -1)
	s.journal.note(at.slot, true)
	s.discard(at.slot)
}
