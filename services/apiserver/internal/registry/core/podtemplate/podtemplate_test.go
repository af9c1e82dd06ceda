package podtemplate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func TestValidate(t *testing.T) {
	template := &corev1.PodTemplate{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "web", Image: "nginx"}}}}}
	Resource.Default(template)
	fieldtest.Check(t, Resource.Strategy.Validate(template))
	template.Template.Spec.Containers = nil
	fieldtest.Check(t, Resource.Strategy.Validate(template), "template.spec.containers: Required value")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
