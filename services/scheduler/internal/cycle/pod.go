package cycle

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rules"
)

// pod is a Pod that waits for a node, or for the API server to store the binding to its node.
type pod struct {
	queue.Entry
	object  *corev1.Pod
	profile *rules.Profile
	class   *class.Class
	phase   phase
	unread  bool       // its claims have changed since its class was found
	stale   bool       // a term that selects it was placed or dropped since its class was found
	node    string     // the node it is assigned to
	claims  *wait      // what the claims of a Pod with a node wait for; nil when it waits for none
	last    *Verdict   // of the last try
	gang    *gangState // that of the PodGroup that it names; nil for a Pod that is scheduled alone
	counted tally      // what it counts as there
	nominee
	extended
}

func (p *pod) preemptor() preempt.Preemptor {
	return preempt.Preemptor{UID: p.UID, Class: p.class, Priority: p.Priority}
}

// older orders Pods as they were created, so that a new leader goes on where the old one stopped.
func older(a, b *pod) int {
	if c := a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time); c != 0 {
		return c
	}
	if a.object.UID < b.object.UID {
		return -1
	}
	return 1
}

// never reports whether the Pod must not preempt other Pods.
func never(p *corev1.Pod) bool {
	return p.Spec.PreemptionPolicy != nil && *p.Spec.PreemptionPolicy == corev1.PreemptNever
}

// SchedulerName is the name of the profile that a Pod requests.
func SchedulerName(p *corev1.Pod) string {
	if p.Spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return p.Spec.SchedulerName
}
