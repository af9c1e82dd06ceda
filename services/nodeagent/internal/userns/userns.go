// Package userns decides which range of the host's user and group IDs each Pod with a user namespace of its own is
// mapped to, so that no two Pods of a node ever share one. It is pure and not safe for concurrent use: the caller holds
// a lock, and keeps each assignment on disk (package podfiles) before the Pod's sandbox starts.
//
//keelson:decision
package userns

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Length is the number of IDs that every Pod gets; inside the Pod they are 0 to Length-1.
const Length = 65536

// Range is a run of host IDs, the same for users and groups.
type Range struct{ First, Length uint32 }

// Default returns the range that is used when the host names none: directly above the IDs that hosts use
// themselves.
func Default(maxPods int) Range {
	return Range{First: Length, Length: uint32(maxPods) * Length}
}

// Pool assigns one range per Pod.
type Pool struct {
	whole    Range
	assigned map[types.UID]Range
}

// NewPool returns a pool that assigns pieces of whole.
func NewPool(whole Range) *Pool {
	return &Pool{whole: whole, assigned: map[types.UID]Range{}}
}

// Assign returns the Pod's range and reserves the lowest free one if it has none. If no range is left, it returns
// an error.
func (p *Pool) Assign(pod types.UID) (Range, error) {
	if r, ok := p.assigned[pod]; ok {
		return r, nil
	}
	taken := make([]uint32, 0, len(p.assigned))
	for _, r := range p.assigned {
		taken = append(taken, r.First)
	}
	slices.Sort(taken)
	for i := range p.whole.Length / Length {
		first := p.whole.First + i*Length
		if _, found := slices.BinarySearch(taken, first); !found {
			p.assigned[pod] = Range{First: first, Length: Length}
			return p.assigned[pod], nil
		}
	}
	return Range{}, fmt.Errorf("all %d user namespace ID ranges of this node are in use", p.whole.Length/Length)
}

// Restore takes over a record on disk. A range that another Pod holds, or that is no piece of this pool, is an
// error and leaves the pool unchanged.
func (p *Pool) Restore(pod types.UID, r Range) error {
	inside := r.First >= p.whole.First &&
		uint64(r.First)+uint64(r.Length) <= uint64(p.whole.First)+uint64(p.whole.Length)
	if r.Length != Length || !inside || (r.First-p.whole.First)%Length != 0 {
		return fmt.Errorf("user namespace range %d+%d is not one of this node's", r.First, r.Length)
	}
	for other, held := range p.assigned {
		if other != pod && held.First == r.First {
			return fmt.Errorf("user namespace range %d+%d is held by pod %s too", r.First, r.Length, other)
		}
	}
	p.assigned[pod] = r
	return nil
}

// Release frees the Pod's range. Call it only when nothing of the Pod runs any more.
func (p *Pool) Release(pod types.UID) { delete(p.assigned, pod) }
