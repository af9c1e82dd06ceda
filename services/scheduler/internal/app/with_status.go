package app

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/cycle"
)

// withStatus is a Cycle that has the status of a Pod follow what the feed notes of the Pod.
type withStatus struct {
	*cycle.Cycle
	loop *loop
}

// SetPod notes a Pod that is new or changed, and has its status say why it has no node.
func (w withStatus) SetPod(p *corev1.Pod, now time.Time) {
	w.Cycle.SetPod(p, now)
	w.loop.publish(p.UID)
}

// RemovePod notes that a Pod is gone, whose status need not say anything any more.
func (w withStatus) RemovePod(p *corev1.Pod) {
	w.Cycle.RemovePod(p)
	w.loop.statuses.Drop(p.UID)
}
