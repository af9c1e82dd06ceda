package health

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// staleAfter is how long a change may be missing in the kernel before load balancers are told to send traffic
// elsewhere. Kubernetes uses the same time: two of its periods of 30 s.
const staleAfter = time.Minute

// autoscalerTaint is set by the cluster autoscaler before it removes a node.
const autoscalerTaint = "ToBeDeletedByClusterAutoscaler"

// Leaving reports whether a node is about to leave: new connections would be cut with it.
func Leaving(n *corev1.Node) bool {
	return n.DeletionTimestamp != nil ||
		slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == autoscalerTaint })
}

// Progress is how far the kernel's table lags behind the Services.
type Progress struct {
	// Programmed means that the kernel has a table, of this agent or of an earlier one.
	Programmed bool
	// PendingSince is since when a change is missing in the kernel; zero if none is.
	PendingSince time.Time
	// Updated is when the table was last brought up to date; zero if this agent has not done so yet.
	Updated time.Time
	Leaving bool
}

// verdict is what load balancers are told.
type verdict struct {
	// healthy means that the rules for Services are up to date.
	healthy bool
	// eligible means that the node takes new connections.
	eligible bool
	updated  time.Time
}

// judge computes the verdict. While the rules are up to date, updated is now.
func judge(p Progress, now time.Time) verdict {
	v := verdict{eligible: !p.Leaving, updated: p.Updated}
	v.healthy = p.Programmed && (p.PendingSince.IsZero() || now.Sub(p.PendingSince) <= staleAfter)
	if v.healthy && !p.Updated.IsZero() {
		v.updated = now
	}
	return v
}
