package deployment

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/services/workload-controllers/internal/revision"
)

// isRescaled reports whether spec.replicas has changed since the ReplicaSets were sized. Their annotations remember,
// so that a restart forgets nothing.
func (r *rollout) isRescaled() bool {
	for _, m := range r.active() {
		if desired, ok := number(m.set, revision.DesiredAnnotation); ok && desired != r.replicas {
			return true
		}
	}
	return false
}

// scale brings the ReplicaSets to spec.replicas without moving the rollout: a single one gets all replicas, several
// keep their proportions when spec.replicas has changed, and else their sizes.
func (r *rollout) scale() {
	active := r.active()
	switch {
	case len(active) == 0:
		if m := r.latest(); m != nil {
			m.resize(r.replicas, ReasonScale)
		}
	case len(active) == 1:
		active[0].resize(r.replicas, ReasonScale)
	case !r.isRescaled():
	case r.isSaturated():
		for _, m := range r.old {
			m.resize(0, ReasonScale)
		}
	case r.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType:
		r.scaleInProportion(active)
	}
}

// scaleInProportion shares the replicas that come or go among the active ReplicaSets, the largest first; what
// rounding leaves over goes to the largest.
func (r *rollout) scaleInProportion(active []*member) {
	delta := -r.total()
	if r.replicas > 0 {
		delta += int(r.replicas + r.surge)
	}
	slices.SortStableFunc(active, func(a, b *member) int { return bySize(a, b, delta > 0) })
	left := delta
	sizes := make([]int, len(active))
	for i, m := range active {
		share := max(min(0, left), min(r.share(m), max(0, left)))
		sizes[i] = int(m.size) + share
		left -= share
	}
	sizes[0] = max(0, sizes[0]+left)
	for i, m := range active {
		m.resize(int32(sizes[i]), ReasonScale)
	}
}

// share returns by how much a ReplicaSet changes so that its part of all replicas stays what it was.
func (r *rollout) share(m *member) int {
	if r.replicas == 0 {
		return -int(m.size)
	}
	former, _ := number(m.set, revision.MaxAnnotation)
	if former == 0 {
		former = r.deployment.Status.Replicas
	}
	if former == 0 {
		return 0
	}
	share := math.Round(float64(m.size) * float64(r.replicas+r.surge) / float64(former))
	return int(min(max(share, 0), math.MaxInt32)) - int(m.size)
}

// bySize puts larger ones first. Of equals the newer goes first when growing, the older when shrinking.
func bySize(a, b *member, growing bool) int {
	age := revision.ByAge(a.set, b.set)
	if growing {
		age = -age
	}
	return cmp.Or(cmp.Compare(b.size, a.size), age)
}

// isSaturated reports whether the current ReplicaSet alone carries the Deployment.
func (r *rollout) isSaturated() bool {
	if r.current == nil {
		return false
	}
	desired, _ := number(r.current.set, revision.DesiredAnnotation)
	return r.current.size == r.replicas && desired == r.replicas && r.current.set.Status.AvailableReplicas == r.replicas
}

// active returns the ReplicaSets that have replicas.
func (r *rollout) active() []*member {
	return slices.DeleteFunc(slices.Clone(r.all()), func(m *member) bool { return m.size == 0 })
}

// latest returns the current ReplicaSet or else the newest old one.
func (r *rollout) latest() *member {
	if r.current != nil || len(r.old) == 0 {
		return r.current
	}
	return r.old[len(r.old)-1]
}

func number(set *appsv1.ReplicaSet, annotation string) (int32, bool) {
	value, err := strconv.ParseInt(set.Annotations[annotation], 10, 32)
	if err != nil {
		return 0, false // of one that is too large ParseInt returns the largest
	}
	return int32(value), true
}
