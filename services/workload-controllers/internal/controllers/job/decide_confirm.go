package job

import "k8s.io/apimachinery/pkg/types"

// agrees reports whether the plan is true to what the server says about the Job's Pods: which there are, and whether they
// have the finalizer. A Pod that the status is to tell of must have it, or it has been counted before; one that is to
// be counted must not.
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
