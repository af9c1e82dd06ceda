package deployment

// recreate stops all old Pods before it starts new ones.
func (r *rollout) recreate() {
	stopping := false
	for _, m := range r.old {
		stopping = stopping || !r.isGone(m)
		m.resize(0, ReasonRecreate)
	}
	switch {
	case stopping:
	case r.current == nil:
		r.create(r.replicas)
	default:
		r.current.resize(r.replicas, ReasonScale)
	}
}

// isGone reports whether no Pod of the ReplicaSet is left that could still run. Three sources have to agree, since
// each alone may be older than the others: the size asked for, the status that answers it, and the Pods.
func (r *rollout) isGone(m *member) bool {
	status := m.set.Status
	terminating := status.TerminatingReplicas != nil && *status.TerminatingReplicas > 0
	return m.size == 0 && m.isAnswered() && status.Replicas == 0 && !terminating &&
		r.unfinished[m.set.UID] == 0
}
