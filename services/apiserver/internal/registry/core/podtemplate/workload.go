package podtemplate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
)

// ValidateAlwaysRunning checks the template of a workload whose Pods are meant to run for ever: they may neither end by
// themselves nor by a deadline. kind is that of the workload.
func ValidateAlwaysRunning(template *corev1.PodTemplateSpec, path *field.Path, kind string) field.ErrorList {
	specPath := path.Child("spec")
	errs := podspec.ValidateTemplate(template, path, podspec.Options{})
	errs = append(errs, fieldcheck.OneOf(template.Spec.RestartPolicy, specPath.Child("restartPolicy"),
		corev1.RestartPolicyAlways)...)
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(specPath.Child("activeDeadlineSeconds"),
			fmt.Sprintf("activeDeadlineSeconds in %s is not Supported", kind)))
	}
	return errs
}
