package statefulset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/workload-controllers/internal/controllerrevision"
)

// revisionNames is a set of names of revisions.
type revisionNames map[string]bool

// alike returns the names of the revisions with the present template.
func alike(history controllerrevision.Plan) revisionNames {
	names := revisionNames{history.Current.Name: true}
	for _, r := range history.Old {
		if slices.Contains(history.Alike, r.Labels[controllerrevision.HashLabel]) {
			names[r.Name] = true
		}
	}
	return names
}

// isUpToDate reports whether a Pod is of the present template.
func (w *work) isUpToDate(pod *corev1.Pod) bool {
	return pod != nil && w.updated[pod.Labels[controllerrevision.HashLabel]]
}

// revisionFor returns the revision and template for a Pod of the ordinal: below the partition they are those that
// the set is being updated from.
func (w *work) revisionFor(ordinal int) (string, *corev1.PodTemplateSpec, error) {
	rolling := w.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType
	if rolling && ordinal < w.partition() {
		for _, r := range w.plan.History.Old {
			if r.Name == w.current {
				template, err := controllerrevision.Template(r)
				return r.Name, template, err
			}
		}
	}
	return w.plan.History.Current.Name, &w.set.Spec.Template, nil
}

// surplusHistory returns the revisions beyond the limit that nothing uses.
func (w *work) surplusHistory(current string) []*appsv1.ControllerRevision {
	used := revisionNames{current: true}
	for _, pod := range w.in.Pods {
		used[pod.Labels[controllerrevision.HashLabel]] = true
	}
	for _, creation := range w.plan.Create {
		used[creation.Pod.Labels[controllerrevision.HashLabel]] = true
	}
	return controllerrevision.Surplus(w.plan.History.Old, w.set.Spec.RevisionHistoryLimit,
		func(r *appsv1.ControllerRevision) bool { return used[r.Name] })
}
