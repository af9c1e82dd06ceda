package attachdetach

import "k8s.io/apimachinery/pkg/types"

// target is what a pass is about: a volume, or a node and what is attached to it.
type target struct {
	volume Volume
	node   string
}

// owner is who the writes about a target are held back for: no object has such a UID.
func (t target) owner() types.UID {
	if t.node != "" {
		return types.UID("node/" + t.node)
	}
	return types.UID(t.volume.Name())
}
