package deployment

import (
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// bounds returns how many replicas may exist beyond spec.replicas and how many of them may be missing.
//
// Percentages are of spec.replicas; the surge is rounded up, the unavailable down. Where both come out as 0 nothing
// could move, so that one replica may be unavailable then. All replicas with the surge are a number that the API can
// hold.
func bounds(deployment *appsv1.Deployment) (surge, unavailable int32) {
	replicas := replicasOf(deployment)
	strategy := deployment.Spec.Strategy
	if strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0, 0
	}
	quarter := intstr.FromString("25%")
	maxSurge, maxUnavailable := &quarter, &quarter
	if rolling := strategy.RollingUpdate; rolling != nil {
		if rolling.MaxSurge != nil {
			maxSurge = rolling.MaxSurge
		}
		if rolling.MaxUnavailable != nil {
			maxUnavailable = rolling.MaxUnavailable
		}
	}
	surge, unavailable = resolve(maxSurge, replicas, true), resolve(maxUnavailable, replicas, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return min(surge, math.MaxInt32-replicas), min(unavailable, replicas)
}

// resolve reads a value that the apiserver has validated; anything else counts as 0.
func resolve(value *intstr.IntOrString, replicas int32, roundUp bool) int32 {
	resolved, err := intstr.GetScaledValueFromIntOrPercent(value, int(replicas), roundUp)
	if err != nil {
		return 0
	}
	return int32(min(max(0, resolved), math.MaxInt32))
}

// roll moves replicas to the current template as far as the bounds allow. The new ReplicaSet grows first; what the old
// ones lose is worked out with it grown, so that both steps of one pass together keep within the bounds.
//
// The bounds are on Pods, not on what is asked for. A ReplicaSet whose status does not speak of the last size yet may
// have more Pods than that, and fewer available ones than the status says: nothing grows beside it, and nothing is
// taken away.
func (r *rollout) roll() {
	oldAnswered := !slices.ContainsFunc(r.old, func(m *member) bool { return !m.isAnswered() })
	switch size := r.grown(); {
	case r.current == nil && oldAnswered:
		r.create(size)
	case r.current == nil:
		r.create(0)
	case oldAnswered || size < r.current.size:
		r.current.resize(size, ReasonRollout)
	}
	if oldAnswered && r.current.isAnswered() {
		removable := r.removable()
		removable -= r.dropUnavailable(removable)
		r.dropSurplus(removable)
	}
}

// isAnswered reports whether the status speaks of the size that was asked for last.
func (m *member) isAnswered() bool {
	return m.created || m.set.Status.ObservedGeneration >= m.set.Generation
}

// grown returns the size of the current ReplicaSet after the growth that the surge allows. Old Pods that have been
// told to go count until their ReplicaSet has let them go.
func (r *rollout) grown() int32 {
	var size int32
	if r.current != nil {
		size = r.current.size
	}
	room := int(r.replicas) + int(r.surge) - int(size)
	for _, m := range r.old {
		room -= int(max(m.size, m.set.Status.Replicas))
	}
	return int32(min(int(size)+max(0, room), int(r.replicas)))
}

// removable returns how many old replicas may go when every new replica that is not available yet counts as missing.
// Unavailable ones go first, so that enough available ones are left.
func (r *rollout) removable() int {
	unavailable := int(r.current.size - r.current.available())
	return max(0, r.total()-int(r.replicas-r.unavailable)-unavailable)
}

// dropUnavailable removes unavailable old replicas, which costs no availability. It returns how many.
func (r *rollout) dropUnavailable(removable int) int {
	dropped := 0
	for _, m := range r.old {
		drop := min(int(m.size-m.available()), removable-dropped)
		if drop <= 0 {
			continue
		}
		m.resize(m.size-int32(drop), ReasonUnhealthy)
		dropped += drop
	}
	return dropped
}

// dropSurplus takes away old replicas that serve, the oldest ReplicaSet first.
func (r *rollout) dropSurplus(removable int) {
	for _, m := range r.old {
		drop := min(int(m.size), removable)
		if drop <= 0 {
			continue
		}
		m.resize(m.size-int32(drop), ReasonRollout)
		removable -= drop
	}
}
