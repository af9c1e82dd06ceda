package health

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// staleAfter is how long a change may be missing in the kernel until load balancers are told to send elsewhere. It is
// that of Kubernetes: two of its periods of 30 s.
const staleAfter = time.Minute

// autoscalerTaint is set by the cluster autoscaler before it takes a node away.
const autoscalerTaint = "ToBeDeletedByClusterAutoscaler"

// Leaving says that a node is on its way out: new connections would be cut with it.
func Leaving(n *corev1.Node) bool {
	return n.DeletionTimestamp != nil ||
		slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == autoscalerTaint })
}

// Progress is how far the kernel is behind what is asked for.
type Progress struct {
	// Programmed says that the kernel has a table, of this agent or of one before.
	Programmed bool
	// PendingSince is since when a change is missing in the kernel; zero if none is.
	PendingSince time.Time
	// Updated is when the table was made right last; zero if this agent has not done so yet.
	Updated time.Time
	Leaving bool
}

// verdict is what load balancers are told.
type verdict struct {
	// healthy says that Services' traffic is led as it should be.
	healthy bool
	// eligible says that the node takes new connections.
	eligible bool
	updated  time.Time
}

// judge says how the node stands. What is led by fresh rules was updated now.
func judge(p Progress, now time.Time) verdict {
	v := verdict{eligible: !p.Leaving, updated: p.Updated}
	v.healthy = p.Programmed && (p.PendingSince.IsZero() || now.Sub(p.PendingSince) <= staleAfter)
	if v.healthy && !p.Updated.IsZero() {
		v.updated = now
	}
	return v
}
