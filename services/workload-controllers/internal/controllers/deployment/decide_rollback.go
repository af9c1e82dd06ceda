package deployment

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"keelson.dev/services/workload-controllers/internal/revision"
)

// rollback answers the annotation deprecated.deployment.rollback.to, which holds a revision, or 0 for the one before
// the present one. The annotation goes away in any case.
func (r *rollout) rollback(request string) *Rollback {
	annotations := maps.Clone(r.deployment.Annotations)
	delete(annotations, appsv1.DeprecatedRollbackTo)

	sets := make([]*appsv1.ReplicaSet, 0, len(r.old)+1)
	for _, m := range r.all() {
		sets = append(sets, m.set)
	}
	target, err := strconv.ParseInt(request, 10, 64)
	if err == nil && target == 0 {
		if target = revision.Previous(sets); target == 0 {
			return &Rollback{Annotations: annotations, Reason: ReasonRollbackStuck, Event: noLastRevision()}
		}
	}
	for _, set := range sets {
		if err != nil || revision.Of(set) != target {
			continue
		}
		if revision.SameTemplate(&r.deployment.Spec.Template, &set.Spec.Template) {
			return &Rollback{Annotations: annotations, Reason: ReasonRollbackMoot, Event: sameTemplate(r.deployment)}
		}
		template := revision.WithoutHash(&set.Spec.Template)
		return &Rollback{
			Template: &template, Annotations: revision.RollbackAnnotations(annotations, set.Annotations),
			Reason: ReasonRollback, Event: rolledBack(r.deployment, target),
		}
	}
	return &Rollback{Annotations: annotations, Reason: ReasonRollbackStuck, Event: noSuchRevision()}
}
