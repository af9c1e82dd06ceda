package resourceclaimtemplate

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/resource/device"
)

var (
	specPath  = field.NewPath("spec")
	claimPath = specPath.Child("spec")
)

// Validate returns what is wrong with a new template.
func Validate(t *template) field.ErrorList {
	metadata := specPath.Child("metadata")
	errs := apivalidation.ValidateAnnotations(t.Spec.Annotations, metadata.Child("annotations"))
	errs = append(errs, metav1validation.ValidateLabels(t.Spec.Labels, metadata.Child("labels"))...)
	return append(errs, device.ValidateClaim(&t.Spec.Spec, claimPath)...)
}

// ValidateUpdate returns what is wrong with t as the successor of old: a template never changes.
func ValidateUpdate(t, old *template) field.ErrorList {
	return fieldcheck.Immutable(t.Spec, old.Spec, specPath)
}
