package cycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/gang"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rules"
)

// gangState is a PodGroup with its Pods.
type gangState struct {
	queue.Entry
	name    types.NamespacedName
	group   *gang.Group // nil while there is none
	waiting map[types.UID]*pod
	placed  map[types.UID]*corev1.Pod // those to which the API shows a node
	tally                             // of those that wait
	refused string                    // why the last try failed
	domains []*class.Class            // those of its Pods that look at domains, after a try that failed
	unit    *preempt.Unit             // those with a node, where they are evicted together
	evicted *corev1.Pod               // one of its Pods, when they were chosen as victims together
	profile *rules.Profile            // of the Pod that came last
	blocker *pod                      // one that did not fit on the node reserved for it, at the last check
}

// count says how many Pods the group has.
func (g *gangState) count() gang.Count {
	n := g.Count
	n.Placed += len(g.placed)
	return n
}

// members returns the Pods that are to be given nodes, in the order in which they are tried.
func (g *gangState) members() (members []*pod) {
	for _, p := range g.waiting {
		if !p.placed() && p.phase != gated {
			members = append(members, p)
		}
	}
	slices.SortFunc(members, older)
	return members
}
