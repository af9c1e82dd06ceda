package deployment

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/revision"
)

// create plans the ReplicaSet of the current template.
func (r *rollout) create(size int32) {
	d := r.deployment
	hash := revision.Hash(&d.Spec.Template, d.Status.CollisionCount)
	template := revision.WithHash(&d.Spec.Template, hash)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name + "-" + hash, Namespace: d.Namespace, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{claim.Reference(owner(d))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Selector: revision.SelectorWithHash(d.Spec.Selector, hash), Template: template,
			MinReadySeconds: d.Spec.MinReadySeconds,
		},
	}
	r.current = &member{set: set, created: true, size: size, reason: ReasonNewTemplate, sized: true,
		minReady: d.Spec.MinReadySeconds}
}

// annotate gives the ReplicaSets the annotations that kubectl and the next pass read.
func (r *rollout) annotate() {
	if r.current != nil && (!r.deployment.Spec.Paused || !r.isStarting()) {
		r.current.annotations = revision.Annotations(r.deployment.Annotations, r.current.annotations, r.revision())
		r.current.minReady = r.deployment.Spec.MinReadySeconds
	}
	for _, m := range r.all() {
		if m.sized && (m.size > 0 || m.size != m.replicas() || m.created) {
			m.annotations = r.sized(m.annotations)
		}
	}
}

// sized remembers for which spec.replicas a ReplicaSet got its size.
func (r *rollout) sized(annotations map[string]string) map[string]string {
	desired, most := strconv.Itoa(int(r.replicas)), strconv.Itoa(int(r.replicas+r.surge))
	if annotations[revision.DesiredAnnotation] == desired && annotations[revision.MaxAnnotation] == most {
		return annotations
	}
	marked := map[string]string{}
	maps.Copy(marked, annotations)
	marked[revision.DesiredAnnotation], marked[revision.MaxAnnotation] = desired, most
	return marked
}

// revision returns the number of the current template: its own, unless an older template has a higher one.
func (r *rollout) revision() int64 {
	old := make([]*appsv1.ReplicaSet, len(r.old))
	for i, m := range r.old {
		old[i] = m.set
	}
	return max(revision.Highest(old)+1, revision.Of(r.current.set))
}

// isStarting reports whether the current template is the Deployment's newest revision without the Deployment knowing
// yet: the mark of a rollout whose start is still to be reported.
func (r *rollout) isStarting() bool {
	return r.current != nil && r.revision() != revision.Of(r.deployment)
}

// updates returns what changes about the ReplicaSets that exist.
func (r *rollout) updates() []Update {
	var updates []Update
	for _, m := range r.all() {
		if m.created {
			continue
		}
		resized := m.size != m.replicas()
		if !resized && m.minReady == m.set.Spec.MinReadySeconds && maps.Equal(m.annotations, m.set.Annotations) {
			continue
		}
		to := m.set.DeepCopy()
		to.Spec.Replicas, to.Spec.MinReadySeconds, to.Annotations = &m.size, m.minReady, m.annotations
		reason := ReasonCopied
		if resized {
			reason = m.reason
		}
		updates = append(updates, Update{From: m.set, To: to, Reason: reason})
	}
	return updates
}

// creation returns the ReplicaSet to create, or nil.
func (r *rollout) creation() *Creation {
	if r.current == nil || !r.current.created {
		return nil
	}
	set := r.current.set
	set.Spec.Replicas, set.Annotations = &r.current.size, r.current.annotations
	return &Creation{ReplicaSet: set, Reason: r.current.reason}
}

// isSameReplicaSet reports whether an object that has the name of the planned ReplicaSet is that ReplicaSet: this
// Deployment's and of the same template, made by an earlier pass that the cache does not show yet. Anything else is a
// collision.
func isSameReplicaSet(planned, existing *appsv1.ReplicaSet) bool {
	mine, its := metav1.GetControllerOfNoCopy(planned), metav1.GetControllerOfNoCopy(existing)
	return its != nil && its.UID == mine.UID && revision.SameTemplate(&planned.Spec.Template, &existing.Spec.Template)
}
