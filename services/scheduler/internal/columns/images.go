package columns

import (
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Image is a container image as the cluster has it; the zero Image is one that no node has.
type Image struct {
	// Size is in bytes, as the node said that was the first to have it.
	Size int64
	// Nodes is how many nodes have it, Among how many there are.
	Nodes, Among int
}

// images are the images that nodes have, and for each which nodes these are.
type images struct {
	byName map[string]*image
	on     map[Slot][]string // the names, as the node says them
}

type image struct {
	size  int64
	nodes nodeSet
	count int
}

// nodeSet has one bit for each slot: most nodes have most images.
type nodeSet []uint64

func (n nodeSet) has(slot Slot) bool { return int(slot/64) < len(n) && n[slot/64]&(1<<(slot%64)) != 0 }

func (n *nodeSet) add(slot Slot) {
	for len(*n) <= int(slot/64) {
		*n = append(*n, 0)
	}
	(*n)[slot/64] |= 1 << (slot % 64)
}

func (n nodeSet) remove(slot Slot) { n[slot/64] &^= 1 << (slot % 64) }

func newImages() images { return images{byName: map[string]*image{}, on: map[Slot][]string{}} }

// set takes over the images of a node and reports whether it has others than before.
func (im *images) set(slot Slot, list []corev1.ContainerImage) (changed bool) {
	before := im.on[slot]
	if same(before, list) {
		return false
	}
	var now []string
	for i := range list {
		for _, name := range list[i].Names {
			now = append(now, name)
			changed = im.add(slot, name, list[i].SizeBytes) || changed
		}
	}
	for _, name := range before {
		if !slices.Contains(now, name) {
			changed = im.remove(slot, name) || changed
		}
	}
	if im.on[slot] = slices.Clip(now); len(now) == 0 {
		delete(im.on, slot)
	}
	return changed
}

// same reports whether the list has these names, in their order.
func same(names []string, list []corev1.ContainerImage) bool {
	at := 0
	for i := range list {
		for _, name := range list[i].Names {
			if at == len(names) || names[at] != name {
				return false
			}
			at++
		}
	}
	return at == len(names)
}

func (im *images) add(slot Slot, name string, size int64) bool {
	at := im.byName[name]
	if at == nil {
		at = &image{size: size}
		im.byName[name] = at
	}
	if at.nodes.has(slot) {
		return false
	}
	at.nodes.add(slot)
	at.count++
	return true
}

func (im *images) remove(slot Slot, name string) bool {
	at := im.byName[name]
	if at == nil || !at.nodes.has(slot) {
		return false // it stood twice
	}
	at.nodes.remove(slot)
	if at.count--; at.count == 0 {
		delete(im.byName, name)
	}
	return true
}

// Image returns the image of that name, tag or digest included.
func (s *State) Image(name string) Image {
	if at := s.images.byName[name]; at != nil {
		return Image{Size: at.size, Nodes: at.count, Among: s.known}
	}
	return Image{}
}

// ImageSet says which of some images a node has: bit i stands for the i-th.
type ImageSet uint64

// MaxImages is how many images a set may be of.
const MaxImages = 64

// Images returns which of these images the node has; those past MaxImages count for nothing.
func (s *State) Images(slot Slot, names []string) (has ImageSet) {
	for i, name := range names[:min(len(names), MaxImages)] {
		if at := s.images.byName[name]; at != nil && at.nodes.has(slot) {
			has |= 1 << i
		}
	}
	return has
}

// All yields the numbers of the images that are in the set.
func (s ImageSet) All(yield func(int) bool) {
	for left := uint64(s); left != 0; left &= left - 1 {
		if !yield(bits.TrailingZeros64(left)) {
			return
		}
	}
}
