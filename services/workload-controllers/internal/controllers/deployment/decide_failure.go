package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/conditions"
	"keelson.dev/services/workload-controllers/internal/revision"
)

// rolledBackCondition is the type of a condition of our own: it tells of a Deployment that asks to go back on failure
// why it does not run what it was given last.
const rolledBackCondition appsv1.DeploymentConditionType = "keelson.dev/RolledBack"

// failBack goes back to the last complete revision when the rollout has exceeded its deadline, the Deployment asks
// for it, and it has never gone back from this template. Nil: it does not.
func (r *rollout) failBack() *Rollback {
	if !r.asksToFailBack() || r.deployment.Spec.Paused || !r.hasFailed() {
		return nil
	}
	failed, before := r.current.set, r.failedBefore()
	if slices.Contains(before, failed.Name) || failed.Annotations[revision.CompleteAnnotation] != "" {
		return nil // what was complete once does not fail by its template
	}
	target := r.lastComplete(before)
	if target == nil {
		return nil
	}
	annotations := maps.Clone(r.deployment.Annotations)
	annotations[revision.FailedAnnotation] = strings.Join(append([]string{failed.Name}, before...), ",")
	annotations[revision.RestoredAnnotation] = target.Name
	template := revision.WithoutHash(&target.Spec.Template)
	return &Rollback{
		Template: &template, Annotations: revision.RollbackAnnotations(annotations, target.Annotations),
		Reason: ReasonFailedBack, Event: failedBack(failed, target),
	}
}

func (r *rollout) asksToFailBack() bool {
	return r.deployment.Annotations[revision.OnFailureAnnotation] == "true"
}

// hasFailed reports whether the status says that the present template has exceeded the deadline, and it still has.
func (r *rollout) hasFailed() bool {
	last := conditions.Deployment.Find(r.deployment.Status.Conditions, appsv1.DeploymentProgressing)
	if r.current == nil || r.current.created || last == nil || last.Reason != reasonTimedOut ||
		last.Message != timedOut(r.current) {
		return false
	}
	status := r.counters()
	is := r.progress(&status)
	return is != nil && is.Reason == reasonTimedOut
}

// failedBefore are the ReplicaSets, as far as they are still there, that the Deployment went back from.
func (r *rollout) failedBefore() []string {
	names := strings.Split(r.deployment.Annotations[revision.FailedAnnotation], ",")
	return slices.DeleteFunc(names, func(name string) bool {
		return !slices.ContainsFunc(r.all(), func(m *member) bool { return m.set.Name == name })
	})
}

// lastComplete returns the old ReplicaSet of the highest revision that was complete and has not failed since.
func (r *rollout) lastComplete(failed []string) *appsv1.ReplicaSet {
	var last *appsv1.ReplicaSet
	for _, m := range r.old {
		if m.set.Annotations[revision.CompleteAnnotation] != "" && !slices.Contains(failed, m.set.Name) &&
			(last == nil || revision.Of(m.set) > revision.Of(last)) {
			last = m.set
		}
	}
	return last
}

// markComplete remembers of the current ReplicaSet that all replicas were available with it. Without replicas nothing
// is shown by that.
func (r *rollout) markComplete() {
	if !r.asksToFailBack() || r.current == nil || r.current.created || r.replicas == 0 ||
		r.current.annotations[revision.CompleteAnnotation] != "" {
		return
	}
	if status := r.counters(); r.isComplete(&status) {
		r.current.annotations = maps.Clone(r.current.annotations)
		r.current.annotations[revision.CompleteAnnotation] = "true"
	}
}

// rolledBack returns the condition that the Deployment went back to its present template, or that it will not go
// back from it again.
func (r *rollout) rolledBack() *appsv1.DeploymentCondition {
	if !r.asksToFailBack() || r.current == nil {
		return nil
	}
	failed, current := r.failedBefore(), r.current.set.Name
	switch {
	case slices.Contains(failed, current):
		return progressing(corev1.ConditionFalse, "RolledBackBefore",
			fmt.Sprintf("ReplicaSet %q was rolled back once; it is not again.", current))
	case len(failed) > 0 && r.deployment.Annotations[revision.RestoredAnnotation] == current:
		return progressing(corev1.ConditionTrue, reasonTimedOut, fmt.Sprintf(
			"ReplicaSet %q has timed out progressing: rolled back to ReplicaSet %q, the last complete one.", failed[0],
			current))
	}
	return nil
}
