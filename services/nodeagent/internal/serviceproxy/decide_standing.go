package serviceproxy

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// staleAfter is how long a change may be missing in the kernel until load balancers are told to send elsewhere. It is
// that of Kubernetes: two of its periods of 30 s.
const staleAfter = time.Minute

// leavingTaint is set by the cluster autoscaler before it takes a node away.
const leavingTaint = "ToBeDeletedByClusterAutoscaler"

// Leaving says that a node is on its way out: new connections would be cut with it.
func Leaving(n *corev1.Node) bool {
	return n.DeletionTimestamp != nil ||
		slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == leavingTaint })
}

// progress is how far the kernel is behind what is asked for.
type progress struct {
	// carries says that the kernel has a table, of this agent or of one before.
	carries bool
	// waiting is since when a change is missing in the kernel; zero if none is.
	waiting time.Time
	// updated is when the table was made right last; zero if this agent has not done so yet.
	updated time.Time
	leaving bool
}

// standing is what load balancers are told.
type standing struct {
	// healthy says that Services' traffic is led as it should be.
	healthy bool
	// eligible says that the node takes new connections.
	eligible bool
	updated  time.Time
}

// stand judges how the node stands. What is led by fresh rules was updated now.
func stand(p progress, now time.Time) standing {
	s := standing{eligible: !p.leaving, updated: p.updated}
	s.healthy = p.carries && (p.waiting.IsZero() || now.Sub(p.waiting) <= staleAfter)
	if s.healthy && !p.updated.IsZero() {
		s.updated = now
	}
	return s
}
