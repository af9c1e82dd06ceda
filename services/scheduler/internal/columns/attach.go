package columns

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Volume is one of those of which a node takes only so many of a CSI driver.
type Volume struct{ Driver, Handle string }

// attachments are the volumes that are on nodes or on their way there.
type attachments struct {
	limits  map[Slot]map[string]int32 // by driver; one that is not there has none
	drivers map[Slot][]string         // sorted
	of      map[types.UID][]Volume    // what each holder holds, wherever it is
	placed  map[types.UID]Slot        // the holders that are no Pods
	held    map[Slot]map[Volume][]types.UID
	counts  map[Slot]map[string]int32 // how many volumes of each driver are held
}

func newAttachments() attachments {
	return attachments{limits: map[Slot]map[string]int32{}, drivers: map[Slot][]string{}, of: map[types.UID][]Volume{},
		placed: map[types.UID]Slot{}, held: map[Slot]map[Volume][]types.UID{}, counts: map[Slot]map[string]int32{}}
}

// SetDrivers notes which drivers a node has, sorted, and how many volumes of each it takes; of others it takes any
// number.
func (s *State) SetDrivers(node string, drivers []string, limits map[string]int32) {
	slot := s.ensure(node)
	had, before := s.attached.drivers[slot], s.attached.limits[slot]
	lacked := func(all []string) func(string) bool {
		return func(driver string) bool { _, ok := slices.BinarySearch(all, driver); return !ok }
	}
	gain, loss := slices.ContainsFunc(drivers, lacked(had)), slices.ContainsFunc(had, lacked(drivers))
	for driver, most := range before {
		now, limited := limits[driver]
		gain, loss = gain || !limited || now > most, loss || limited && now < most
	}
	for driver := range limits {
		_, limited := before[driver]
		loss = loss || !limited
	}
	if s.attached.limits[slot] = limits; len(limits) == 0 {
		delete(s.attached.limits, slot)
	}
	if s.attached.drivers[slot] = drivers; len(drivers) == 0 {
		delete(s.attached.drivers, slot)
	}
	if gain || loss {
		s.journal.note(slot, gain)
	}
	s.discard(slot)
}

// SetVolumes notes what a Pod holds on the node where it takes room or where room is kept for it, if there is one.
func (s *State) SetVolumes(uid types.UID, now []Volume) {
	before := s.attached.of[uid]
	if slices.Equal(before, now) {
		return
	}
	slots := make([]Slot, 0, 2)
	if at, ok := s.pods[uid]; ok {
		slots = append(slots, at.slot)
	}
	if slot, ok := s.reserved.slots[uid]; ok {
		slots = append(slots, slot)
	}
	s.setVolumes(uid, now, slots...)
}

// SetAttachment notes a volume that is on a node, whichever Pods are there; the empty node is that of one that is gone.
func (s *State) SetAttachment(uid types.UID, node string, now []Volume) {
	before, known := s.attached.placed[uid]
	if known && (s.names[before] != node || len(now) == 0) {
		s.setVolumes(uid, nil, before)
		delete(s.attached.placed, uid)
		s.identity[before].pods--
		s.discard(before)
		known = false
	}
	if node == "" || len(now) == 0 {
		return
	}
	slot := s.ensure(node)
	if !known {
		s.attached.placed[uid] = slot
		s.identity[slot].pods++
	}
	s.setVolumes(uid, now, slot)
}

func (s *State) setVolumes(uid types.UID, now []Volume, slots ...Slot) {
	before := s.attached.of[uid]
	left := slices.ContainsFunc(before, func(v Volume) bool { return !slices.Contains(now, v) })
	for _, slot := range slots {
		s.attached.release(slot, uid)
	}
	if s.attached.of[uid] = now; len(now) == 0 {
		delete(s.attached.of, uid)
	}
	for _, slot := range slots {
		s.journal.note(slot, s.holdVolumes(slot, uid) || left)
	}
}

// holdVolumes notes that what the holder holds is on the node, once more. It is a gain where a volume comes of which
// the node takes only so many, or may have been held for a nominated Pod alone: who shares it brings nothing new there
// from now on.
func (s *State) holdVolumes(slot Slot, uid types.UID) (gain bool) {
	a := &s.attached
	for _, v := range a.of[uid] {
		held := a.held[slot]
		if held == nil {
			held, a.counts[slot] = map[Volume][]types.UID{}, map[string]int32{}
			a.held[slot] = held
		}
		_, limited := a.limits[slot][v.Driver]
		gain = gain || limited && (len(held[v]) == 0 || len(s.reserved.on[slot]) > 0)
		if len(held[v]) == 0 {
			a.counts[slot][v.Driver]++
		}
		held[v] = append(held[v], uid)
	}
	return gain
}

// release takes back one hold.
func (a *attachments) release(slot Slot, uid types.UID) {
	for _, v := range a.of[uid] {
		held := a.held[slot]
		i := slices.Index(held[v], uid)
		if held[v] = slices.Delete(held[v], i, i+1); len(held[v]) > 0 {
			continue
		}
		delete(held, v)
		a.counts[slot][v.Driver]--
		if len(held) == 0 {
			delete(a.held, slot)
			delete(a.counts, slot)
		}
	}
}

// HasDriver reports whether the CSI driver is there.
func (n Node) HasDriver(name string) bool {
	_, ok := slices.BinarySearch(n.state.attached.drivers[n.slot], name)
	return ok
}

// VolumesFit reports whether the node takes so many new volumes of a driver, and these, of which some may be there:
// with the Pods that are nominated for the node, and if these do not come.
func (n Node) VolumesFit(driver string, fresh int, shared []Volume) bool {
	most, limited := n.state.attached.limits[n.slot][driver]
	if !limited {
		return true
	}
	var lacks func(types.UID) bool
	if n.gone != nil && len(n.gone.holders) > 0 {
		lacks = func(uid types.UID) bool { return slices.Contains(n.gone.holders, uid) }
	}
	if !n.volumesFit(driver, fresh, shared, most, lacks) {
		return false
	}
	return len(n.state.reserved.on[n.slot]) == 0 || n.volumesFit(driver, fresh, shared, most,
		func(uid types.UID) bool { return n.nominee(uid) || lacks != nil && lacks(uid) })
}

// volumesFit is VolumesFit without the holders that the node lacks.
func (n Node) volumesFit(driver string, fresh int, shared []Volume, most int32, lacks func(types.UID) bool) bool {
	held, there := n.state.attached.held[n.slot], n.state.attached.counts[n.slot][driver]
	free := func(v Volume) bool {
		return !slices.ContainsFunc(held[v], func(uid types.UID) bool { return lacks == nil || !lacks(uid) })
	}
	if lacks != nil {
		for v := range held {
			if v.Driver == driver && free(v) {
				there--
			}
		}
	}
	more := int32(fresh)
	for _, v := range shared {
		if v.Driver == driver && free(v) {
			more++
		}
	}
	return more == 0 || there+more <= most
}

// nominee reports whether the holder is a Pod for which room is kept on the node, and which is not there.
func (n Node) nominee(holder types.UID) bool {
	slot, reserved := n.state.reserved.slots[holder]
	_, there := n.state.pods[holder]
	return reserved && slot == n.slot && !there
}

// Lacks reports whether the node is looked at without this Pod, which is on it.
func (n Node) Lacks(uid types.UID) bool { return n.gone != nil && slices.Contains(n.gone.pods, uid) }
