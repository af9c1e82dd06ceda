package deployment

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/services/workload-controllers/internal/revision"
)

// surplusHistory returns the old ReplicaSets beyond spec.revisionHistoryLimit of a complete rollout, the lowest
// revision first. One whose last size is not 0, or is not answered, counts but stays.
func (r *rollout) surplusHistory() []Deletion {
	limit := r.deployment.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return nil
	}
	var alive []*appsv1.ReplicaSet
	for _, m := range r.old {
		if m.set.DeletionTimestamp == nil {
			alive = append(alive, m.set)
		}
	}
	slices.SortStableFunc(alive, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Compare(revision.Of(a), revision.Of(b))
	})
	var deletions []Deletion
	for _, set := range alive[:max(0, len(alive)-int(*limit))] {
		if sizeOf(set) == 0 && set.Status.ObservedGeneration >= set.Generation {
			deletions = append(deletions, Deletion{ReplicaSet: set, Reason: ReasonHistoryLimit})
		}
	}
	return deletions
}
