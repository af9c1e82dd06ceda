package daemonset

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/kit/podspec"
)

// prepareForCreate starts to count the templates.
func prepareForCreate(d *appsv1.DaemonSet) {
	podspec.DropUnserved(&d.Spec.Template.Spec)
	setTemplateGeneration(d, 1)
}

// prepareForUpdate counts a changed template, whatever the request says of their number.
func prepareForUpdate(d, old *appsv1.DaemonSet) {
	podspec.DropUnserved(&d.Spec.Template.Spec)
	generation := templateGeneration(old)
	if !equality.Semantic.DeepEqual(d.Spec.Template, old.Spec.Template) {
		generation++
	}
	setTemplateGeneration(d, generation)
}

// templateGeneration is how many templates d has had. It stands in an annotation since it left the spec, and
// Pods bear it as a label.
func templateGeneration(d *appsv1.DaemonSet) int64 {
	generation, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil || generation < 1 {
		return 1
	}
	return generation
}

func setTemplateGeneration(d *appsv1.DaemonSet, generation int64) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(generation, 10)
}
