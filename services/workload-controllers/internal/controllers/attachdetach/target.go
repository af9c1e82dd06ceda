package attachdetach

import "k8s.io/apimachinery/pkg/types"

// target is the subject of a pass: a volume, or a node and its attachments.
type target struct {
	volume Volume
	node   string
}

// owner returns the UID under which the gate holds back the writes about a target; no object has such a UID.
func (t target) owner() types.UID {
	if t.node != "" {
		return types.UID("node/" + t.node)
	}
	return types.UID(t.volume.Name())
}
