package columns

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Occupant is a Pod that takes room on a node.
type Occupant struct {
	Pod      *corev1.Pod
	Usage    *Usage
	Priority int32
	// Started is status.startTime in nanoseconds; that of a Pod which has not started is later than all.
	Started int64
}

func occupant(p *corev1.Pod, u *Usage) Occupant {
	o := Occupant{Pod: p, Usage: u, Priority: Priority(p), Started: math.MaxInt64}
	if p.Status.StartTime != nil {
		o.Started = p.Status.StartTime.UnixNano()
	}
	return o
}

// Priority is spec.priority; Pods of before priorities existed have 0.
func Priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// Importance orders Pods, the most important first: by priority, then the one that runs longest.
func Importance(a, b Occupant) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Started, b.Started),
		strings.Compare(string(a.Pod.UID), string(b.Pod.UID)))
}

// Occupants returns the Pods that take room on the node, the most important first. The caller must not change it; it is
// valid until the State changes. The first call lists the Pods of every node, as that of PodsOn.
func (s *State) Occupants(slot Slot) []Occupant {
	s.listOccupants()
	return s.podsOn[slot]
}

// Occupant returns the Pod as one that takes room, and the slot of its node; false when it takes none.
func (s *State) Occupant(uid types.UID) (Occupant, Slot, bool) {
	at, ok := s.pods[uid]
	if !ok {
		return Occupant{}, None, false
	}
	return occupant(at.pod, at.usage), at.slot, true
}

// LowestPriority returns the lowest priority of a Pod that takes room; false when none does.
func (s *State) LowestPriority() (lowest int32, ok bool) {
	for priority := range s.ranks {
		if !ok || priority < lowest {
			lowest, ok = priority, true
		}
	}
	return lowest, ok
}

func (s *State) listOccupants() {
	if s.podsOn != nil {
		return
	}
	s.podsOn = map[Slot][]Occupant{}
	for _, at := range s.pods {
		s.podsOn[at.slot] = append(s.podsOn[at.slot], occupant(at.pod, at.usage))
	}
	for _, on := range s.podsOn {
		slices.SortFunc(on, Importance)
	}
}

func (s *State) addOccupant(slot Slot, p *corev1.Pod, u *Usage) {
	s.ranks[Priority(p)]++
	if s.podsOn == nil {
		return
	}
	on, o := s.podsOn[slot], occupant(p, u)
	i, _ := slices.BinarySearchFunc(on, o, Importance)
	s.podsOn[slot] = slices.Insert(on, i, o)
}

func (s *State) removeOccupant(at placement) {
	priority := Priority(at.pod)
	if s.ranks[priority]--; s.ranks[priority] == 0 {
		delete(s.ranks, priority)
	}
	if s.podsOn == nil {
		return
	}
	on := slices.DeleteFunc(s.podsOn[at.slot], func(o Occupant) bool { return o.Pod.UID == at.pod.UID })
	if s.podsOn[at.slot] = on; len(on) == 0 {
		delete(s.podsOn, at.slot)
	}
}

// replaceOccupant takes over a Pod that takes the same room on the same node as before. The node is noted as changed
// if that matters to a Pod that would take its room.
func (s *State) replaceOccupant(before placement, now *corev1.Pod) {
	old, o := occupant(before.pod, before.usage), occupant(now, before.usage)
	if old.Priority != o.Priority || old.Started != o.Started {
		s.removeOccupant(before)
		s.addOccupant(before.slot, now, before.usage)
		s.journal.note(before.slot, false)
		return
	}
	if i := slices.IndexFunc(s.podsOn[before.slot], func(o Occupant) bool { return o.Pod.UID == now.UID }); i >= 0 {
		s.podsOn[before.slot][i].Pod = now
	}
}

// Note notes in the journal that something about the Pod's node has changed, other than its room. It is a
// gain where a Pod that did not get room there before may get it now.
func (s *State) Note(uid types.UID, gain bool) {
	if at, ok := s.pods[uid]; ok {
		s.journal.note(at.slot, gain)
	}
}
