package preempt

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
)

// Units are the Pods that are evicted together or not at all.
type Units struct {
	of      map[types.UID]*Unit
	changed map[*Unit]bool // since the last call of Note, and whether a Pod left it
	left    []types.UID    // their units since then
}

// Unit is Pods that are evicted together or not at all. A nil one has no Pods, and takes none.
type Unit struct {
	in       *Units
	priority int32
	pods     map[types.UID]bool
}

// NewUnits returns no units.
func NewUnits() *Units { return &Units{of: map[types.UID]*Unit{}, changed: map[*Unit]bool{}} }

// New returns a unit without Pods. Only a Pod of a priority above that of the unit, and above those of all its Pods,
// takes its room.
func (u *Units) New(priority int32) *Unit {
	return &Unit{in: u, priority: priority, pods: map[types.UID]bool{}}
}

// Add has a Pod be evicted with the others. To add it again says that it changed.
func (u *Unit) Add(uid types.UID) {
	if u == nil {
		return
	}
	u.pods[uid], u.in.of[uid] = true, u
	u.in.Touch(uid)
}

// Remove has a Pod of the unit be evicted alone.
func (u *Unit) Remove(uid types.UID) {
	if u == nil || !u.pods[uid] {
		return
	}
	delete(u.pods, uid)
	delete(u.in.of, uid)
	u.in.changed[u], u.in.left = true, append(u.in.left, uid)
}

// Dissolve has each Pod of the unit be evicted alone.
func (u *Unit) Dissolve() {
	if u == nil {
		return
	}
	for uid := range u.pods {
		u.Remove(uid)
	}
}

// Touch notes that something about a Pod is not as it was.
func (u *Units) Touch(uid types.UID) {
	unit := u.of[uid]
	if unit == nil {
		return
	}
	if _, known := u.changed[unit]; !known {
		u.changed[unit] = false
	}
}

// Note notes in the journal the nodes where it may cost something else than before to take the room of
// Pods, as their units changed. Where a Pod left its unit that is a gain: others of it may go now.
func (u *Units) Note(state *columns.State) {
	for unit, gain := range u.changed {
		for uid := range unit.pods {
			state.Note(uid, gain)
		}
	}
	for _, uid := range u.left {
		state.Note(uid, true)
	}
	clear(u.changed)
	u.left = u.left[:0]
}

// party is a Pod that is evicted alone, or all Pods of a unit.
type party struct {
	lead       *columns.Occupant // the most important
	others     []columns.Occupant
	violations int32 // how many of them no budget lets go
}

func (p *party) leave(t *columns.Trial) {
	t.Remove(p.lead)
	for i := range p.others {
		t.Remove(&p.others[i])
	}
}

func (p *party) stay(t *columns.Trial) {
	t.Restore(p.lead)
	for i := range p.others {
		t.Restore(&p.others[i])
	}
}

// pods calls each with every Pod of the party, the most important first.
func (p *party) pods(each func(*columns.Occupant)) {
	each(p.lead)
	for i := range p.others {
		each(&p.others[i])
	}
}

// gather sorts these Pods, the most important first, into parties that may go for a Pod of a higher priority, and adds
// to each unit its Pods on other nodes than this one. A unit with a Pod that may not go stays as a whole.
func (s *Search) gather(lower []columns.Occupant, priority int32, slot columns.Slot) []party {
	s.parties, s.seen, s.apart, s.bound = s.parties[:0], s.seen[:0], false, false
	for i := range lower {
		o := &lower[i]
		unit := s.units.of[o.Pod.UID]
		switch {
		case unit == nil || s.leaving(o.Pod):
			s.parties = append(s.parties, party{lead: o})
			continue
		case slices.Contains(s.seen, unit):
			continue
		}
		s.seen = append(s.seen, unit)
		if members, ok := s.members(unit, priority, slot); ok {
			s.parties = append(s.parties, party{lead: &members[0], others: members[1:]})
		} else {
			s.bound = true
		}
	}
	if len(s.seen) > 0 { // a Pod on another node may come first
		slices.SortFunc(s.parties, func(a, b party) int { return columns.Importance(*a.lead, *b.lead) })
	}
	return s.parties
}

// members returns the Pods of a unit that do not leave already, the most important first; false when one of them may
// not go.
func (s *Search) members(unit *Unit, priority int32, slot columns.Slot) ([]columns.Occupant, bool) {
	if unit.priority >= priority {
		return nil, false
	}
	members, apart := make([]columns.Occupant, 0, len(unit.pods)), false
	for uid := range unit.pods {
		o, at, ok := s.state.Occupant(uid)
		switch {
		case !ok || s.leaving(o.Pod):
			continue
		case o.Priority >= priority:
			return nil, false
		}
		members, apart = append(members, o), apart || at != slot
	}
	slices.SortFunc(members, columns.Importance)
	s.apart = s.apart || apart
	return members, true
}

// binds reports whether the Pods of a unit stay.
func (s *Search) binds(unit *Unit, priority int32) bool {
	_, ok := s.members(unit, priority, columns.None)
	return !ok
}

// together sorts Pods that are to go into parties.
func (s *Search) together(pods []columns.Occupant) []party {
	slices.SortFunc(pods, columns.Importance)
	s.parties = s.parties[:0]
	at := map[*Unit]int{}
	for i := range pods {
		unit := s.units.of[pods[i].Pod.UID]
		if k, ok := at[unit]; ok && unit != nil {
			s.parties[k].others = append(s.parties[k].others, pods[i])
			continue
		}
		at[unit] = len(s.parties)
		s.parties = append(s.parties, party{lead: &pods[i]})
	}
	return s.parties
}
