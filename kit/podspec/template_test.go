package podspec

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// POD-037 DEP-009: a template is checked as the Pods made from it would be, its metadata too.
func TestValidateTemplate(t *testing.T) {
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a b": "c"}, Annotations: map[string]string{"d e": "",
			DeletionCostAnnotation: "x"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "A", Image: "a"}}},
	}
	SetTemplateDefaults(template)
	got := texts(ValidateTemplate(template, field.NewPath("spec", "template"), Options{}))
	want := []string{
		`spec.template.metadata.annotations: Invalid value: "d e": ` + notAName,
		`spec.template.metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "x": must be a 32bit integer`,
		`spec.template.metadata.labels: Invalid value: "a b": ` + notAName,
		`spec.template.spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A template is no Pod: it carries no ephemeral containers, and its deadline has never been lowered to nothing.
func TestValidateTemplateAsATemplate(t *testing.T) {
	template := &corev1.PodTemplateSpec{Spec: *nginx()}
	template.Spec.HostNetwork, template.Spec.ActiveDeadlineSeconds = true, ptr.To[int64](0)
	template.Spec.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}}}
	SetTemplateDefaults(template)
	got := texts(ValidateTemplate(template, field.NewPath("template"), Options{}))
	want := []string{
		`template.spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive`,
		`template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// DEP-183
func TestDeletionCost(t *testing.T) {
	rows := map[string]bool{
		"2147483647": true, "-2147483648": true, "0": true, "-1": true,
		"2147483648": false, "-2147483649": false, "abc": false, "1.5": false, "": false, "+1": false, "01": false,
		"-0": false,
	}
	for cost, valid := range rows {
		errs := ValidateAnnotations(map[string]string{DeletionCostAnnotation: cost},
			field.NewPath("metadata", "annotations"))
		if (len(errs) == 0) != valid {
			t.Errorf("cost %q: %v, want valid=%t", cost, errs, valid)
		}
	}
}
