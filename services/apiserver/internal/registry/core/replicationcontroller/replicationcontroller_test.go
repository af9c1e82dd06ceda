package replicationcontroller

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// nginx is a ReplicationController with the required fields alone, after edits, defaulted.
func nginx(edits ...func(*corev1.ReplicationController)) *corev1.ReplicationController {
	rc := &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "nginx", Namespace: "default"},
		Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx"}}},
		}},
	}
	for _, edit := range edits {
		edit(rc)
	}
	Default(rc)
	return rc
}

// DEP-193, DEP-194, DEP-197: labels and selector are those of the template where they are left out, and only there.
func TestDefault(t *testing.T) {
	rc := nginx()
	want := map[string]string{"app": "nginx"}
	if *rc.Spec.Replicas != 1 || !maps.Equal(rc.Spec.Selector, want) || !maps.Equal(rc.Labels, want) {
		t.Errorf("replicas %d, selector %v, labels %v", *rc.Spec.Replicas, rc.Spec.Selector, rc.Labels)
	}
	rc.Labels["own"] = "x"
	if len(rc.Spec.Template.Labels) != 1 || len(rc.Spec.Selector) != 1 {
		t.Error("the labels are those of the template itself")
	}
	own := nginx(func(rc *corev1.ReplicationController) {
		rc.Labels, rc.Spec.Selector = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	})
	if own.Labels["a"] != "b" || len(own.Labels) != 1 || own.Spec.Selector["c"] != "d" || len(own.Spec.Selector) != 1 {
		t.Errorf("labels %v, selector %v", own.Labels, own.Spec.Selector)
	}
	Default(&corev1.ReplicationController{})
}

func TestValidate(t *testing.T) {
	for name, row := range map[string]struct {
		edit func(*corev1.ReplicationController)
		want []string
	}{
		"DEP-192 the template alone": {func(*corev1.ReplicationController) {}, nil},
		"DEP-192 no template": {func(rc *corev1.ReplicationController) {
			rc.Spec.Template, rc.Spec.Selector = nil, map[string]string{"app": "nginx"}
		}, []string{"spec.template: Required value"}},
		"nothing selected": {func(rc *corev1.ReplicationController) { rc.Spec.Template.Labels = nil },
			[]string{"spec.selector: Required value"}},
		"DEP-194 the selector does not fit": {func(rc *corev1.ReplicationController) {
			rc.Spec.Selector = map[string]string{"app": "b"}
		},
			[]string{"spec.template.metadata.labels: Invalid value: {\"app\":\"nginx\"}: `selector` does not match " +
				"template `labels`"}},
		"DEP-195 more labels than the selector": {func(rc *corev1.ReplicationController) {
			rc.Spec.Selector = map[string]string{"app": "nginx"}
			rc.Spec.Template.Labels["track"] = "a"
		}, nil},
		"DEP-195 fewer labels than the selector": {func(rc *corev1.ReplicationController) {
			rc.Spec.Selector = map[string]string{"app": "nginx", "track": "a"}
		}, []string{"spec.template.metadata.labels: Invalid value"}},
		"DEP-192 never again": {func(rc *corev1.ReplicationController) {
			rc.Spec.Template.Spec.RestartPolicy = "Never"
		},
			[]string{`spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`}},
		"negative counts": {func(rc *corev1.ReplicationController) {
			rc.Spec.Replicas, rc.Spec.MinReadySeconds = ptr.To[int32](-1), -1
		}, []string{"spec.replicas: Invalid value: -1", "spec.minReadySeconds: Invalid value: -1"}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, Validate(nginx(row.edit)), row.want...) })
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	rc := &corev1.ReplicationController{Status: corev1.ReplicationControllerStatus{Replicas: 2, ReadyReplicas: 2,
		AvailableReplicas: 2, FullyLabeledReplicas: 2}}
	fieldtest.Check(t, ValidateStatusUpdate(rc, rc))
	rc.Status.FullyLabeledReplicas, rc.Status.ReadyReplicas, rc.Status.ObservedGeneration = 3, 1, -1
	fieldtest.Check(t, ValidateStatusUpdate(rc, rc), "status.observedGeneration: Invalid value: -1",
		"status.fullyLabeledReplicas: Invalid value: 3: cannot be greater than status.replicas",
		"status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
