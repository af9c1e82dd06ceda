// Package columns is the scheduler's picture of the cluster: which nodes there are, what they offer and what the Pods
// on them take, in arrays indexed by a node's slot.
//
// The picture changes by increments only. Each change of a node is noted in a journal, so that a reader who has seen
// the picture before looks at what changed since and at nothing else.
//
// The package is pure and not safe for concurrent use: one goroutine owns a State.
//
//keelson:decision
package columns

import (
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Slot is the index of a node in the columns. A slot is used again after its node is gone.
type Slot int32

// None is no slot.
const None Slot = -1

// State holds the columns. Make one with New.
type State struct {
	seed  uint64
	slots map[string]Slot
	names []string // by slot; "" where the slot is free
	free  []Slot
	known int

	identity []identity
	room     []Room
	extended []extended
	ports    map[Slot][]heldPort

	resources  map[corev1.ResourceName]Resource
	shapes     shapes
	usages     usages
	pods       map[types.UID]placement
	podsOn     map[Slot][]Occupant // nil until the first query; the most important first
	ranks      map[int32]int       // how many Pods take room, by priority
	reserved   reservations
	pinned     map[string][]Slot // nodes whose hostname label is not their name, by that label
	terms      terms
	selections selections
	domains    map[string]*Domains
	layouts    map[string]*layout
	images     images
	attached   attachments
	storage    storage
	journal    journal
}

// identity is what distinguishes a node from the others of its shape. A slot whose shape is 0 has no Node object: Pods
// name a node that is not here yet, or no longer.
type identity struct {
	shape       ShapeID
	tie         uint32
	hasHostname bool
	hostname    string
	pods        int32 // entries of State.pods, of State.reserved and of attachments.placed on this slot
}

// New returns an empty State. The seed decides between nodes of equal score.
func New(seed uint64) *State {
	return &State{
		seed:      seed,
		slots:     map[string]Slot{},
		ports:     map[Slot][]heldPort{},
		resources: map[corev1.ResourceName]Resource{},
		shapes:    newShapes(),
		usages:    usages{},
		pods:      map[types.UID]placement{},
		ranks:     map[int32]int{},
		reserved:  newReservations(),
		pinned:    map[string][]Slot{},
		terms:     newTerms(),
		domains:   map[string]*Domains{},
		layouts:   map[string]*layout{},
		images:    newImages(),
		attached:  newAttachments(),
		storage:   newStorage(),
		journal:   newJournal(),
	}
}

// Nodes returns how many nodes have a Node object.
func (s *State) Nodes() int { return s.known }

// Slots returns the number of slots; every Slot is below it.
func (s *State) Slots() int { return len(s.names) }

// Known reports whether the slot has a Node object.
func (s *State) Known(slot Slot) bool { return s.identity[slot].shape != 0 }

// Name returns the name of the slot's node.
func (s *State) Name(slot Slot) string { return s.names[slot] }

// Slot returns the slot of the node, None when nothing is known of it.
func (s *State) Slot(node string) Slot {
	if slot, ok := s.slots[node]; ok {
		return slot
	}
	return None
}

// ByHostname returns the nodes whose label kubernetes.io/hostname has the value.
func (s *State) ByHostname(value string) []Slot {
	slot, ok := s.slots[value]
	if !ok || !s.hostnamed(slot, value) {
		return s.pinned[value]
	}
	return append([]Slot{slot}, s.pinned[value]...)
}

func (s *State) hostnamed(slot Slot, value string) bool {
	id := &s.identity[slot]
	return id.hasHostname && id.hostname == value
}

// Hostname returns the node's label kubernetes.io/hostname, and whether it has one.
func (s *State) Hostname(slot Slot) (string, bool) {
	return s.identity[slot].hostname, s.identity[slot].hasHostname
}

// Tie returns the seeded number that decides between nodes of equal score.
func (s *State) Tie(slot Slot) uint32 { return s.identity[slot].tie }

// SetNode adds the node or takes over what changed of it.
func (s *State) SetNode(n *corev1.Node) Slot {
	slot := s.ensure(n.Name)
	id := &s.identity[slot]
	added := id.shape == 0
	renamed := s.setHostname(slot, n)
	reshaped := s.reshape(id, n)
	described := added || renamed || reshaped
	grown, shrunk := s.setAllocatable(slot, n.Status.Allocatable)
	if added {
		s.known++
	}
	if described {
		s.placeInDomains(slot)
		s.placeInTuples(slot)
	}
	pulled := s.images.set(slot, n.Status.Images)
	if described || grown || shrunk || pulled {
		s.journal.note(slot, described || grown)
	}
	return slot
}

// setHostname takes over the node's label kubernetes.io/hostname and reports whether it changed.
func (s *State) setHostname(slot Slot, n *corev1.Node) bool {
	id := &s.identity[slot]
	host, hasHost := n.Labels[corev1.LabelHostname]
	if id.hostname == host && id.hasHostname == hasHost {
		return false
	}
	s.unpin(slot)
	if host == n.Name {
		host = s.names[slot] // one string for both
	}
	id.hostname, id.hasHostname = host, hasHost
	s.pin(slot)
	return true
}

// RemoveNode forgets the node. Pods that are bound to it keep counting, so that the node is right when it returns.
func (s *State) RemoveNode(name string) {
	slot, ok := s.slots[name]
	if !ok || !s.Known(slot) {
		return
	}
	id := &s.identity[slot]
	s.unpin(slot)
	s.shapes.release(id.shape)
	id.shape, id.hostname, id.hasHostname = 0, "", false
	s.placeInDomains(slot)
	s.placeInTuples(slot)
	s.setAllocatable(slot, nil)
	s.images.set(slot, nil)
	s.known--
	s.journal.note(slot, false)
	s.discard(slot)
}

// labelOf returns the value of a node's label, and whether it has it.
func (s *State) labelOf(slot Slot, key string) (string, bool) {
	switch {
	case !s.Known(slot):
		return "", false
	case key == corev1.LabelHostname:
		return s.Hostname(slot)
	}
	value, ok := s.shapes.byID[s.identity[slot].shape].Labels[key]
	return value, ok
}

// ByLabel returns the nodes that have the label, by its value, in the order of their slots.
func (s *State) ByLabel(key string) map[string][]Slot {
	slots := map[string][]Slot{}
	for slot := range Slot(s.Slots()) {
		if value, ok := s.labelOf(slot, key); ok {
			slots[value] = append(slots[value], slot)
		}
	}
	return slots
}

// Label returns the value of a node's label, and whether the node is there and has it.
func (s *State) Label(slot Slot, key string) (string, bool) { return s.labelOf(slot, key) }

func (s *State) placeInDomains(slot Slot) {
	for _, l := range s.layouts {
		l.place(slot)
	}
}

// ensure returns the slot of a node and makes one where there is none.
func (s *State) ensure(name string) Slot {
	if slot, ok := s.slots[name]; ok {
		return slot
	}
	var slot Slot
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
	} else {
		slot = Slot(len(s.names))
		s.names = append(s.names, "")
		s.identity = append(s.identity, identity{})
		s.room = append(s.room, Room{})
		for i := range s.extended {
			s.extended[i].grow(len(s.names))
		}
		s.journal.fit(len(s.names))
	}
	s.names[slot], s.slots[name] = name, slot
	s.identity[slot] = identity{tie: tie(s.seed, name)}
	return slot
}

// discard frees a slot that has neither a Node object nor Pods nor volumes nor drivers.
func (s *State) discard(slot Slot) {
	if s.Known(slot) || s.identity[slot].pods > 0 || s.attached.limits[slot] != nil ||
		s.attached.drivers[slot] != nil {
		return
	}
	delete(s.slots, s.names[slot])
	s.names[slot] = ""
	s.free = append(s.free, slot)
}

func (s *State) pin(slot Slot) {
	id := &s.identity[slot]
	if id.hasHostname && id.hostname != s.names[slot] {
		s.pinned[id.hostname] = append(s.pinned[id.hostname], slot)
	}
}

func (s *State) unpin(slot Slot) {
	id := &s.identity[slot]
	if !id.hasHostname || id.hostname == s.names[slot] {
		return
	}
	kept := s.pinned[id.hostname][:0]
	for _, other := range s.pinned[id.hostname] {
		if other != slot {
			kept = append(kept, other)
		}
	}
	if len(kept) == 0 {
		delete(s.pinned, id.hostname)
		return
	}
	s.pinned[id.hostname] = kept
}

func tie(seed uint64, name string) uint32 {
	h := fnv.New64a()
	var b [8]byte
	for i := range b {
		b[i] = byte(seed >> (8 * i))
	}
	h.Write(b[:])
	h.Write([]byte(name))
	v := h.Sum64()
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	return uint32(v)
}
