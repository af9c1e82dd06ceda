package job

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podspec"
)

// The labels as they were before they had a prefix. Old clients look for them.
const (
	legacyJobNameLabel       = "job-name"
	legacyControllerUIDLabel = "controller-uid"
)

// DropUnserved clears what is alpha and not served here.
func DropUnserved(spec *batchv1.JobSpec) {
	spec.Scheduling = nil
	podspec.DropUnserved(&spec.Template.Spec)
}

// generateSelector gives the template labels that no other Job's Pods have, and makes the Job select by them. What the
// client set is left alone: a contradiction is for validation to tell. With manualSelector all is left to the client.
func generateSelector(j *batchv1.Job) {
	if ptr.Deref(j.Spec.ManualSelector, false) {
		return
	}
	template := &j.Spec.Template
	// A Job that bears its template's labels goes on bearing them.
	alike := maps.Equal(j.Labels, template.Labels)
	template.Labels = withMissing(template.Labels, generatedLabels(j))
	if alike {
		j.Labels = maps.Clone(template.Labels)
	}
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	j.Spec.Selector.MatchLabels = withMissing(j.Spec.Selector.MatchLabels,
		map[string]string{batchv1.ControllerUidLabel: string(j.UID)})
}

// generatedLabels are those that the Pods of j alone have.
func generatedLabels(j *batchv1.Job) map[string]string {
	return map[string]string{
		batchv1.JobNameLabel:       j.Name,
		batchv1.ControllerUidLabel: string(j.UID),
		legacyJobNameLabel:         j.Name,
		legacyControllerUIDLabel:   string(j.UID),
	}
}

// withMissing is set with those of added whose keys it does not have.
func withMissing(set, added map[string]string) map[string]string {
	all := maps.Clone(added)
	maps.Copy(all, set)
	return all
}

// validateGenerated wants the selector and the labels to be the generated ones, unless the client chose to make up its
// own.
func validateGenerated(j *batchv1.Job) field.ErrorList {
	if ptr.Deref(j.Spec.ManualSelector, false) || j.Spec.Selector == nil {
		return nil
	}
	var errs field.ErrorList
	generated := generatedLabels(j)
	labelsPath := templatePath.Child("metadata", "labels")
	for _, key := range []string{
		legacyControllerUIDLabel, legacyJobNameLabel, batchv1.ControllerUidLabel, batchv1.JobNameLabel,
	} {
		if value, found := j.Spec.Template.Labels[key]; !found {
			errs = append(errs, field.Required(labelsPath.Key(key), "must be '"+generated[key]+"'"))
		} else if value != generated[key] {
			errs = append(errs, field.Invalid(labelsPath.Key(key), value, "must be '"+generated[key]+"'"))
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(j.Spec.Selector)
	if err == nil && !selector.Matches(labels.Set(generated)) {
		errs = append(errs, field.Invalid(selectorPath, j.Spec.Selector, "`selector` not auto-generated; "+
			"leave it out, or set manualSelector to choose one"))
	}
	return errs
}
