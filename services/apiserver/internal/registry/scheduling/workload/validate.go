package workload

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/scheduling/podgroup"
)

var (
	specPath      = field.NewPath("spec")
	templatesPath = specPath.Child("podGroupTemplates")
)

// Validate returns what is wrong with a Workload.
func Validate(w *schedulingv1beta1.Workload) field.ErrorList {
	var errs field.ErrorList
	if ref, at := w.Spec.ControllerRef, specPath.Child("controllerRef"); ref != nil {
		errs = append(errs, fieldcheck.Optional(ref.APIGroup, at.Child("apiGroup"), fieldcheck.DNSSubdomain)...)
		errs = append(errs, fieldcheck.Required(ref.Kind, at.Child("kind"), content.IsPathSegmentName)...)
		errs = append(errs, fieldcheck.Required(ref.Name, at.Child("name"), content.IsPathSegmentName)...)
	}
	return append(errs, validateTemplates(w.Spec.PodGroupTemplates)...)
}

func validateTemplates(templates []schedulingv1beta1.PodGroupTemplate) field.ErrorList {
	switch n := len(templates); {
	case n == 0:
		return field.ErrorList{field.Required(templatesPath, "must have at least one item")}
	case n > schedulingv1beta1.WorkloadMaxPodGroupTemplates:
		return field.ErrorList{field.TooMany(templatesPath, n, schedulingv1beta1.WorkloadMaxPodGroupTemplates)}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range templates {
		t, at := &templates[i], templatesPath.Index(i)
		errs = append(errs, fieldcheck.Required(t.Name, at.Child("name"), validation.IsDNS1123Label)...)
		if names.Has(t.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), t.Name))
		}
		names.Insert(t.Name)
		group := groupOf(t)
		errs = append(errs, podgroup.ValidateSpec(&group, at)...)
	}
	return errs
}

// ValidateUpdate returns what is wrong with w as the successor of old: there are the same templates, and only how many
// Pods a gang has at least may change.
func ValidateUpdate(w, old *schedulingv1beta1.Workload) field.ErrorList {
	errs := append(Validate(w), fieldcheck.Immutable(w.Spec.ControllerRef, old.Spec.ControllerRef,
		specPath.Child("controllerRef"))...)
	before := map[string]*schedulingv1beta1.PodGroupTemplate{}
	for i := range old.Spec.PodGroupTemplates {
		t := &old.Spec.PodGroupTemplates[i]
		before[t.Name] = t
	}
	kept := sets.New[string]()
	for i := range w.Spec.PodGroupTemplates {
		t, at := &w.Spec.PodGroupTemplates[i], templatesPath.Index(i)
		was := before[t.Name]
		if was == nil {
			errs = append(errs, field.Forbidden(at, "item may not be added"))
			continue
		}
		kept.Insert(t.Name)
		group, oldGroup := groupOf(t), groupOf(was)
		errs = append(errs, podgroup.ValidateSpecUpdate(&group, &oldGroup, at)...)
	}
	for range len(before) - len(kept) {
		errs = append(errs, field.Forbidden(templatesPath, "item may not be removed"))
	}
	return errs
}
