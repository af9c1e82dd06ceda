package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/services/workload-controllers/internal/podops"
)

// bounds returns how many nodes may have a second Pod, and how many may lack an available one, during an update.
// Percentages of the nodes are rounded up. At least one bound is not 0.
func bounds(strategy *appsv1.DaemonSetUpdateStrategy, nodes int) (surge, unavailable int) {
	if strategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return 0, 0
	}
	if rolling := strategy.RollingUpdate; rolling != nil {
		surge, unavailable = share(rolling.MaxSurge, nodes), share(rolling.MaxUnavailable, nodes)
	}
	if surge == 0 {
		unavailable = max(1, unavailable)
	}
	return surge, unavailable
}

// share evaluates a number or a percentage of the nodes. An invalid value, which the apiserver refuses, counts as 0.
func share(of *intstr.IntOrString, nodes int) int {
	if of == nil {
		return 0
	}
	number, err := intstr.GetScaledValueFromIntOrPercent(of, nodes, true)
	if err != nil {
		return 0
	}
	return number
}

// update deletes old Pods; later passes create new ones in their place. An unavailable Pod may be deleted at once;
// of the available ones, as many as the bound allows beyond the nodes that lack one.
func (r *round) update() {
	lacking := 0
	var candidates []*corev1.Pod
	for at := range r.stations {
		s := &r.stations[at]
		kept := s.fresh
		if kept == nil {
			kept = s.old
		}
		serves := kept != nil && r.isAvailable(kept)
		if s.verdict == runs && !serves {
			lacking++
		}
		switch {
		case s.old == nil:
		case serves:
			candidates = append(candidates, s.old)
		default:
			r.end(s.old, podops.Outdated)
		}
	}
	for _, pod := range candidates[:min(len(candidates), max(0, r.unavailable-lacking))] {
		r.end(pod, podops.Outdated)
	}
}

// updateWithSurge creates new Pods beside old ones, and deletes the old ones once the new ones are available. An
// unavailable Pod may get a second one at once; of the available ones, as many as the bound allows. A node that gets
// no new Pods loses its old one. A node with an excess old Pod gets a new one only after the excess one has been
// deleted: whatever fails in between, it never has three.
func (r *round) updateWithSurge() {
	surging := 0
	var candidates []string
	for at := range r.stations {
		s := &r.stations[at]
		switch {
		case s.old == nil:
		case s.verdict != runs:
			r.end(s.old, podops.Outdated)
		case s.fresh != nil || s.failed || s.crowded:
			surging++
		case !r.isAvailable(s.old):
			r.plan.Create = append(r.plan.Create, s.node)
		default:
			candidates = append(candidates, s.node)
		}
	}
	r.plan.Create = append(r.plan.Create, candidates[:min(len(candidates), max(0, r.surge-surging))]...)
}
