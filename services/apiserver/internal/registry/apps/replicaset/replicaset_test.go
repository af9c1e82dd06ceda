package replicaset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// frontend is a ReplicaSet with the required fields alone, after edits, defaulted.
func frontend(edits ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "frontend", Namespace: "default",
			Labels: map[string]string{"app": "guestbook", "tier": "frontend"}},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "frontend"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"tier": "frontend"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "php-redis",
					Image: "gb-frontend:v5"}}},
			},
		},
	}
	for _, edit := range edits {
		edit(rs)
	}
	Default(rs)
	return rs
}

// DEP-165, DEP-164.
func TestDefault(t *testing.T) {
	rs := frontend()
	if *rs.Spec.Replicas != 1 || rs.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("replicas %d, restartPolicy %s", *rs.Spec.Replicas, rs.Spec.Template.Spec.RestartPolicy)
	}
	again := rs.DeepCopy()
	Default(again)
	if !equality.Semantic.DeepEqual(rs, again) {
		t.Error("defaults are not idempotent")
	}
	if zero := frontend(func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = ptr.To[int32](0) }); *zero.Spec.Replicas != 0 {
		t.Errorf("zero replicas became %d", *zero.Spec.Replicas)
	}
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name string
		edit func(*appsv1.ReplicaSet)
		want []string
	}{
		{"DEP-147 the example", func(*appsv1.ReplicaSet) {}, nil},
		{"DEP-164 no selector", func(rs *appsv1.ReplicaSet) { rs.Spec.Selector = nil },
			[]string{"spec.selector: Required value"}},
		{"DEP-164 empty selector", func(rs *appsv1.ReplicaSet) { rs.Spec.Selector = &metav1.LabelSelector{} },
			[]string{"spec.selector: Invalid value"}},
		{"DEP-164 labels do not match", func(rs *appsv1.ReplicaSet) { rs.Spec.Template.Labels["tier"] = "back" },
			[]string{"spec.template.metadata.labels: Invalid value: {\"tier\":\"back\"}: `selector` does not match " +
				"template `labels`"}},
		{"DEP-164 restart policy", func(rs *appsv1.ReplicaSet) { rs.Spec.Template.Spec.RestartPolicy = "Never" },
			[]string{`spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`}},
		{"DEP-166 set-based selector", func(rs *appsv1.ReplicaSet) {
			rs.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier",
				Operator: "NotIn", Values: []string{"back"}}}}
		}, nil},
		{"negative replicas", func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = ptr.To[int32](-1) },
			[]string{"spec.replicas: Invalid value: -1"}},
		{"DEP-152 negative minReadySeconds", func(rs *appsv1.ReplicaSet) { rs.Spec.MinReadySeconds = -1 },
			[]string{"spec.minReadySeconds: Invalid value: -1"}},
		{"DEP-152 minReadySeconds", func(rs *appsv1.ReplicaSet) { rs.Spec.MinReadySeconds = 5 }, nil},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(frontend(row.edit)), row.want...) })
	}
	t.Run("DEP-014 the selector stays", func(t *testing.T) {
		rs := frontend(func(rs *appsv1.ReplicaSet) {
			rs.Spec.Selector.MatchLabels["a"], rs.Spec.Template.Labels["a"] = "b", "b"
		})
		errs := ValidateUpdate(rs, frontend())
		fieldtest.Check(t, errs, "spec.selector: Invalid value: ")
		if len(errs) > 0 && errs[0].Detail != "field is immutable" {
			t.Errorf("detail %q", errs[0].Detail)
		}
	})
	t.Run("an update to itself", func(t *testing.T) { fieldtest.Check(t, ValidateUpdate(frontend(), frontend())) })
}

// DEP-152.
func TestValidateStatusUpdate(t *testing.T) {
	good := appsv1.ReplicaSetStatus{Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1,
		ObservedGeneration: 2}
	for _, row := range []struct {
		name string
		edit func(*appsv1.ReplicaSetStatus)
		want []string
	}{
		{"all counters", func(*appsv1.ReplicaSetStatus) {}, nil},
		{"more labeled than there are", func(s *appsv1.ReplicaSetStatus) { s.FullyLabeledReplicas = 4 },
			[]string{"status.fullyLabeledReplicas: Invalid value: 4: cannot be greater than status.replicas"}},
		{"more ready than there are", func(s *appsv1.ReplicaSetStatus) { s.ReadyReplicas = 4 },
			[]string{"status.readyReplicas: Invalid value: 4: cannot be greater than status.replicas"}},
		{"available but not ready", func(s *appsv1.ReplicaSetStatus) { s.AvailableReplicas = 3 },
			[]string{"status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas"}},
		{"negative", func(s *appsv1.ReplicaSetStatus) { s.ObservedGeneration = -1 },
			[]string{"status.observedGeneration: Invalid value: -1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			rs := frontend()
			good.DeepCopyInto(&rs.Status)
			row.edit(&rs.Status)
			fieldtest.Check(t, ValidateStatusUpdate(rs, frontend()), row.want...)
		})
	}
}

// DEP-019, for ReplicaSets.
func TestGenerationAndIsolation(t *testing.T) {
	stored := frontend()
	stored.Status.Replicas = 9
	object, status := Resource.ObjectWrites(), Resource.StatusWrites()
	object.PrepareForCreate(stored)
	if stored.Generation != 1 || stored.Status.Replicas != 0 {
		t.Fatalf("a new ReplicaSet has generation %d and status %+v", stored.Generation, stored.Status)
	}
	relabeled, resized, reported := stored.DeepCopy(), stored.DeepCopy(), stored.DeepCopy()
	relabeled.Labels["a"] = "b"
	object.PrepareForUpdate(relabeled, stored)
	resized.Spec.Replicas, resized.Status.Replicas = ptr.To[int32](4), 4
	object.PrepareForUpdate(resized, stored)
	reported.Spec.Replicas, reported.Status.Replicas = ptr.To[int32](4), 4
	status.PrepareForUpdate(reported, stored)
	if relabeled.Generation != 1 || resized.Generation != 2 || resized.Status.Replicas != 0 {
		t.Errorf("generations %d, %d; status %+v", relabeled.Generation, resized.Generation, resized.Status)
	}
	if reported.Generation != 1 || *reported.Spec.Replicas != 1 || reported.Status.Replicas != 4 {
		t.Errorf("a write of the status made %+v of generation %d", reported.Spec.Replicas, reported.Generation)
	}
}

// DEP-035, DEP-036.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}
