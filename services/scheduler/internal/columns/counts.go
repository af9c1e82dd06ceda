package columns

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// countPod adds (by 1) or takes back (by -1) a Pod on a node, for the terms that select it and those that it carries.
func (s *State) countPod(slot Slot, p *corev1.Pod, by int32) {
	s.selections.count(slot, p, int(by))
	for _, t := range s.terms.counting.selecting(p) {
		s.countSelected(slot, t, by)
	}
	s.countCarried(slot, s.terms.ofPod[p.UID], by)
}

func (s *State) countSelected(slot Slot, t *Term, by int32) {
	if t.selected == nil {
		return
	}
	bump(t.selected, slot, by)
	for _, d := range t.domains {
		if !d.Carriers {
			d.add(slot, by)
		}
	}
}

func (s *State) countCarried(slot Slot, carried []*Term, by int32) {
	for _, t := range carried {
		if by > 0 {
			s.terms.place(t)
		}
		bump(t.carried, slot, by)
		for _, d := range t.domains {
			if d.Carriers {
				d.add(slot, by)
			}
		}
	}
}

// recount takes over a Pod on a node of which nothing changed that takes room.
func (s *State) recount(slot Slot, before, now *corev1.Pod) {
	alike := before.Namespace == now.Namespace && maps.Equal(before.Labels, now.Labels) &&
		(before.DeletionTimestamp == nil) == (now.DeletionTimestamp == nil)
	if alike || len(s.terms.byKey) == 0 && s.selections.byKey == nil {
		return
	}
	s.selections.count(slot, before, -1)
	s.selections.count(slot, now, 1)
	for _, t := range s.terms.counting.selecting(before) {
		s.countSelected(slot, t, -1)
	}
	for _, t := range s.terms.counting.selecting(now) {
		s.countSelected(slot, t, 1)
	}
	s.journal.note(slot, false)
}

func bump(counts map[Slot]int32, slot Slot, by int32) {
	if counts[slot] += by; counts[slot] == 0 {
		delete(counts, slot)
	}
}
