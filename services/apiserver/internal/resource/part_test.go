package resource

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What follows from the accessors of spec and status, and how kinds that differ say so.
func TestWritesFollowFromParts(t *testing.T) {
	plain := Resource[*appsv1.Deployment]{
		Spec:   PartOf(func(d *appsv1.Deployment) *appsv1.DeploymentSpec { return &d.Spec }),
		Status: PartOf(func(d *appsv1.Deployment) *appsv1.DeploymentStatus { return &d.Status }),
	}
	uncounted, registering, preparing := plain, plain, plain
	uncounted.NoGeneration, registering.StatusOnCreate = true, true
	preparing.Strategy.PrepareForUpdate = func(d, _ *appsv1.Deployment) { d.Spec.MinReadySeconds = 0 }
	for _, row := range []struct {
		name                       string
		resource                   Resource[*appsv1.Deployment]
		created, updated, replicas int64
	}{
		{"a kind with both parts", plain, 1, 8, 0},
		{"one that does not count generations", uncounted, 0, 5, 0},
		{"one that brings its status", registering, 1, 8, 3},
		{"one that takes the change back", preparing, 1, 7, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			created := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 3}}
			row.resource.ObjectWrites().PrepareForCreate(created)
			if created.Generation != row.created || int64(created.Status.Replicas) != row.replicas {
				t.Errorf("a new one has generation %d and %d replicas", created.Generation, created.Status.Replicas)
			}
			old := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 3}}
			old.Generation = 7
			updated := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{MinReadySeconds: 9}}
			updated.Generation = 5
			row.resource.ObjectWrites().PrepareForUpdate(updated, old)
			if updated.Generation != row.updated || updated.Status.Replicas != 3 {
				t.Errorf("an updated one has generation %d and status %+v", updated.Generation, updated.Status)
			}
			reported := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{MinReadySeconds: 9}}
			row.resource.StatusWrites().PrepareForUpdate(reported, old)
			if reported.Spec.MinReadySeconds != 0 || reported.Status.Replicas != 0 {
				t.Errorf("a write of the status made %+v", reported)
			}
		})
	}
	if object, status := plain.ObjectWrites(), plain.StatusWrites(); !slices.Equal(object.ResetFields,
		[]string{"status"}) ||
		!slices.Equal(status.ResetFields, []string{"spec"}) {
		t.Errorf("fields reset by the object %v, by the status %v", object.ResetFields, status.ResetFields)
	}
}

// What a kind prepares with the time is prepared before changes are counted.
func TestPreparationWithTimesIsCounted(t *testing.T) {
	r := Resource[*appsv1.Deployment]{
		Spec: PartOf(func(d *appsv1.Deployment) *appsv1.DeploymentSpec { return &d.Spec }),
		Strategy: Strategy[*appsv1.Deployment]{PrepareAt: func(d, old *appsv1.Deployment, now metav1.Time) {
			if old == nil {
				d.Spec.MinReadySeconds = int32(now.Unix())
			} else if d.Spec.MinReadySeconds == 0 {
				d.Spec.MinReadySeconds = old.Spec.MinReadySeconds
			}
		}},
	}
	rules := r.ObjectWrites()
	created := &appsv1.Deployment{}
	rules.PrepareForCreate(created)
	rules.PrepareAt(created, nil, metav1.Unix(9, 0))
	if created.Generation != 1 || created.Spec.MinReadySeconds != 9 {
		t.Errorf("a new one has generation %d and %d seconds", created.Generation, created.Spec.MinReadySeconds)
	}
	for seconds, want := range map[int32]int64{0: 1, 9: 1, 8: 2} {
		updated := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{MinReadySeconds: seconds}}
		rules.PrepareForUpdate(updated, created)
		rules.PrepareAt(updated, created, metav1.Unix(10, 0))
		if updated.Generation != want {
			t.Errorf("one updated to %d seconds has generation %d, want %d", seconds, updated.Generation, want)
		}
	}
}

// Checks of new objects hold for updates unless the kind says what does.
func TestValidateChecksUpdates(t *testing.T) {
	refused := field.ErrorList{field.Required(field.NewPath("spec"), "")}
	r := Resource[*appsv1.Deployment]{Strategy: Strategy[*appsv1.Deployment]{
		Validate: func(*appsv1.Deployment) field.ErrorList { return refused },
	}}
	if errs := r.ObjectWrites().ValidateUpdate(nil, nil); len(errs) != 1 {
		t.Errorf("an update got %v", errs)
	}
	r.Strategy.ValidateUpdate = func(_, _ *appsv1.Deployment) field.ErrorList { return nil }
	if errs := r.ObjectWrites().ValidateUpdate(nil, nil); len(errs) != 0 {
		t.Errorf("an update got %v in spite of a rule of its own", errs)
	}
}

// A write pays for the comparison of its spec alone, as if the kind compared it itself.
func TestComparisonAllocatesNothingMore(t *testing.T) {
	full := func() *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", LivenessProbe: &corev1.Probe{}}}
		return d
	}
	obj, old := full(), full()
	spec := PartOf(func(d *appsv1.Deployment) *appsv1.DeploymentSpec { return &d.Spec })
	derived := testing.AllocsPerRun(100, func() { spec.same(obj, old) })
	direct := testing.AllocsPerRun(100, func() { equality.Semantic.DeepEqual(obj.Spec, old.Spec) })
	if derived > direct {
		t.Errorf("%v allocations, a direct comparison needs %v", derived, direct)
	}
}
