package cycle

import corev1 "k8s.io/api/core/v1"

// phase is the phase of a Pod of our profiles to which the API shows no node.
type phase uint8

const (
	// pending is in the queue, by itself or by its group, unless another process leads its profile.
	pending phase = iota
	// gated is held by its scheduling gates.
	gated
	// nominated is pending, and room is reserved for it on a node.
	nominated
	// asking waits for the answers of extenders.
	asking
	// evicting waits for the outcome of the evictions of its plan.
	evicting
	// assumed is assigned to a node, and takes its room there.
	assumed
	// claiming is assumed, and waits on its node for its claims to be bound.
	claiming
)

// phases are their names.
var phases = [...]string{"pending", "gated", "nominated", "asking", "evicting", "assumed", "claiming"}

func (p phase) String() string { return phases[p] }

// enter moves the Pod to another phase, in which its group counts it.
func (p *pod) enter(to phase) {
	checkMove(p, to)
	unassigned := p.placed() && to != assumed && to != claiming
	p.phase = to
	p.recount()
	if unassigned && p.gang != nil {
		p.gang.unit.Remove(p.UID)
	}
}

// rest has a Pod wait for its next try that has no node and that neither extenders nor evictions hold.
func (p *pod) rest() {
	switch {
	case isGated(p.object):
		p.enter(gated)
	case p.nominated != "":
		p.enter(nominated)
	default:
		p.enter(pending)
	}
}

// waits reports whether the Pod is to be tried.
func (p *pod) waits() bool { return p.phase == pending || p.phase == nominated }

// placed reports whether the Pod is assigned to a node.
func (p *pod) placed() bool { return p.phase == assumed || p.phase == claiming }

// isGated reports whether scheduling gates hold the Pod.
func isGated(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }
