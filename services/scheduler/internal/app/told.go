package app

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/cycle"
)

// told is the Cycle as changes of the API are told to it: what they mean for the status of a Pod is seen to.
type told struct {
	*cycle.Cycle
	loop *loop
}

// SetPod notes a Pod that is new or changed, and has its status say why it has no node.
func (t told) SetPod(p *corev1.Pod, now time.Time) {
	t.Cycle.SetPod(p, now)
	t.loop.publish(p.UID)
}

// RemovePod notes that a Pod is gone, whose status need not say anything any more.
func (t told) RemovePod(p *corev1.Pod) {
	t.Cycle.RemovePod(p)
	t.loop.statuses.Drop(p.UID)
}
