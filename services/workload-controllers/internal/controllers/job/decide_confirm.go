package job

import "k8s.io/apimachinery/pkg/types"

// agrees reports whether the plan agrees with the apiserver: which of the Job's Pods exist, and whether they have
// the finalizer. A Pod to record must have it, otherwise it has been counted before; a Pod to count must not.
func (p *Plan) agrees(tracked map[types.UID]bool) bool {
	for _, pod := range p.Recorded {
		if !tracked[pod.UID] {
			return false
		}
	}
	for _, uid := range p.Vanished {
		if tracked[uid] {
			return false
		}
	}
	return true
}
