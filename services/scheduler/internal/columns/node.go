package columns

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Node is what is free on a node as rules see it: on the node as it is, or as it would be without some of its Pods. It
// is valid until the State changes.
type Node struct {
	state *State
	slot  Slot
	room  *Room
	gone  *gone // nil for the node as it is
	alone bool  // whether nothing is gone of other nodes, whatever gone says
	// expected are Pods for which room is kept here and that count in domains as if they were here.
	expected []Reservation
}

// gone is the Pods that a Node is without, and what they take, but for what is in a Room.
type gone struct {
	pods     []types.UID
	holders  []types.UID // these, and the Pods for which room is kept no longer
	extended []Amount
	ports    []Port
	beside   []beside
}

// beside is a Pod that another node is without.
type beside struct {
	slot Slot
	pod  types.UID
}

// Node returns the node as it is.
func (s *State) Node(slot Slot) Node { return Node{state: s, slot: slot, room: &s.room[slot]} }

// NodeWithout returns the node as it would be without these of its Pods. Those that are not on it count for nothing.
func (s *State) NodeWithout(slot Slot, uids ...types.UID) Node {
	room, without := s.room[slot], &gone{}
	for i, uid := range uids {
		at, ok := s.pods[uid]
		if !ok || at.slot != slot || slices.Contains(uids[:i], uid) {
			continue
		}
		room.take(at.usage, -1)
		without.pods, without.holders = append(without.pods, uid), append(without.holders, uid)
		without.add(at.usage)
	}
	return Node{state: s, slot: slot, room: &room, gone: without}
}

// beside returns what is gone of other nodes.
func (n Node) beside() []beside {
	if n.alone {
		return nil
	}
	return n.gone.beside
}

func (g *gone) add(u *Usage) {
	g.extended = append(g.extended, u.Extended...)
	g.ports = append(g.ports, u.Ports...)
}

// Slot returns the slot of the node.
func (n Node) Slot() Slot { return n.slot }

// View returns the node's description. The node must have a Node object.
func (n Node) View() View { return n.state.View(n.slot) }

// Name returns the name of the node.
func (n Node) Name() string { return n.state.names[n.slot] }

// Room returns what the node offers and what is taken of it. The caller must not change it.
func (n Node) Room() *Room { return n.room }

// Free returns what is left of the resource; negative when Pods take more than there is.
func (n Node) Free(r Resource) int64 {
	allocatable, used := n.Amounts(r)
	return allocatable - used
}

// Amounts returns what the node offers of the resource and what is taken of it.
func (n Node) Amounts(r Resource) (allocatable, used int64) {
	if r < basic {
		return n.room.Allocatable[r], n.room.Used[r]
	}
	column := &n.state.extended[r-basic]
	allocatable, used = column.allocatable[n.slot], column.used[n.slot]
	if n.gone != nil {
		for _, a := range n.gone.extended {
			if a.Resource == r {
				used -= a.Value
			}
		}
	}
	return allocatable, used
}

// Allocatable returns how much of the resource the node has, whichever Pods take it.
func (n Node) Allocatable(r Resource) int64 {
	if r < basic {
		return n.room.Allocatable[r]
	}
	return n.state.extended[r-basic].allocatable[n.slot]
}

// PortsFree reports whether the node has none of the ports in use.
func (n Node) PortsFree(ports []Port) bool {
	for _, held := range n.state.ports[n.slot] {
		if n.gone != nil && held.holders == count(n.gone.ports, held.Port) {
			continue
		}
		for _, p := range ports {
			if held.Conflicts(p) {
				return false
			}
		}
	}
	return true
}

func count(ports []Port, port Port) int {
	n := 0
	for _, p := range ports {
		if p == port {
			n++
		}
	}
	return n
}
