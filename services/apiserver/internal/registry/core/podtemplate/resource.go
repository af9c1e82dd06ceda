// Package podtemplate is the resource PodTemplate of the core group, and the rules for the Pod templates of workloads
// on top of those of every Pod.
//
//keelson:decision
package podtemplate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the PodTemplate.
var Resource = resource.Resource[*corev1.PodTemplate]{
	Name:     "podtemplates",
	Singular: "podtemplate",
	New:      func() *corev1.PodTemplate { return &corev1.PodTemplate{} },
	NewList:  func() runtime.Object { return &corev1.PodTemplateList{} },
	Default:  func(t *corev1.PodTemplate) { podspec.SetTemplateDefaults(&t.Template) },
	// There is no status: what is counted is the template.
	Spec: resource.PartOf(func(t *corev1.PodTemplate) *corev1.PodTemplateSpec { return &t.Template }),
	Strategy: resource.Strategy[*corev1.PodTemplate]{
		PrepareForCreate: func(t *corev1.PodTemplate) { podspec.DropUnserved(&t.Template.Spec) },
		PrepareForUpdate: func(t, _ *corev1.PodTemplate) { podspec.DropUnserved(&t.Template.Spec) },
		Validate:         validate,
		ValidateUpdate:   func(t, _ *corev1.PodTemplate) field.ErrorList { return validate(t) },
	},
	Columns: resource.NewColumns(
		resource.NameColumn[*corev1.PodTemplate](),
		resource.Column("Containers", "string", "Names of each container in the template.",
			func(t *corev1.PodTemplate) any { return table.ContainerNames(t.Template.Spec.Containers) }),
		resource.Column("Images", "string", "Images referenced by each container in the template.",
			func(t *corev1.PodTemplate) any { return table.ContainerImages(t.Template.Spec.Containers) }),
		resource.Column("Pod Labels", "string", "The labels for the pod template.",
			func(t *corev1.PodTemplate) any { return table.Labels(t.Template.Labels) }),
	),
}

func validate(t *corev1.PodTemplate) field.ErrorList {
	return podspec.ValidateTemplate(&t.Template, field.NewPath("template"), podspec.Options{})
}
