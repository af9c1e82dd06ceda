package deployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestValidateStatusUpdate(t *testing.T) {
	for _, row := range []struct {
		name        string
		status, old appsv1.DeploymentStatus
		want        []string
	}{
		{"DEP-038 all counters", appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 3, UpdatedReplicas: 3,
			ReadyReplicas: 2, AvailableReplicas: 1,
			UnavailableReplicas: 2, TerminatingReplicas: ptr.To[int32](1), CollisionCount: ptr.To[int32](1)},
			appsv1.DeploymentStatus{}, nil},
		{"more than there are", appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 2, ReadyReplicas: 2,
			AvailableReplicas: 2}, appsv1.DeploymentStatus{},
			[]string{"status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas",
				"status.readyReplicas: Invalid value: 2: cannot",
				"status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas"}},
		{"available but not ready", appsv1.DeploymentStatus{Replicas: 2, AvailableReplicas: 1},
			appsv1.DeploymentStatus{},
			[]string{"status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas"}},
		{"negative", appsv1.DeploymentStatus{ObservedGeneration: -1, UnavailableReplicas: -1,
			TerminatingReplicas: ptr.To[int32](-1)}, appsv1.DeploymentStatus{},
			[]string{"status.observedGeneration: Invalid value: -1", "status.unavailableReplicas: Invalid value: -1",
				"status.terminatingReplicas: Invalid value: -1"}},
		{"collisions count up", appsv1.DeploymentStatus{CollisionCount: ptr.To[int32](2)},
			appsv1.DeploymentStatus{CollisionCount: ptr.To[int32](1)}, nil},
		{"collisions count down", appsv1.DeploymentStatus{CollisionCount: ptr.To[int32](1)},
			appsv1.DeploymentStatus{CollisionCount: ptr.To[int32](2)},
			[]string{"status.collisionCount: Invalid value: 1: cannot be decremented"}},
		{"collisions forgotten", appsv1.DeploymentStatus{}, appsv1.DeploymentStatus{CollisionCount: ptr.To[int32](2)},
			[]string{"status.collisionCount: Invalid value: 0: cannot be decremented"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fieldtest.Check(t, ValidateStatusUpdate(&appsv1.Deployment{Status: row.status},
				&appsv1.Deployment{Status: row.old}), row.want...)
		})
	}
}

// DEP-019: a write of the object ignores the status, a write of the status ignores the spec, and only a change of the
// spec raises the generation.
func TestGenerationAndIsolation(t *testing.T) {
	stored := changed()
	object, status := Resource.ObjectWrites(), Resource.StatusWrites()
	object.PrepareForCreate(stored)
	if stored.Generation != 1 {
		t.Fatalf("a new Deployment has generation %d", stored.Generation)
	}
	stored.Status.Replicas = 3
	for _, row := range []struct {
		name   string
		edit   func(*appsv1.Deployment)
		status bool
		want   int64
	}{
		{"labels", func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} }, false, 1},
		{"annotations", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} }, false, 1},
		{"spec", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) }, false, 2},
		{"template", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "b" }, false, 2},
		{"status by the object", func(d *appsv1.Deployment) { d.Status.Replicas = 9 }, false, 1},
		{"generation by the client", func(d *appsv1.Deployment) { d.Generation = 99 }, false, 1},
		{"spec by the status", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) }, true, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := stored.DeepCopy()
			row.edit(d)
			if row.status {
				status.PrepareForUpdate(d, stored)
				if !equality.Semantic.DeepEqual(d.Spec, stored.Spec) {
					t.Error("a write of the status changed the spec")
				}
			} else {
				object.PrepareForUpdate(d, stored)
				if !equality.Semantic.DeepEqual(d.Status, stored.Status) {
					t.Error("a write of the object changed the status")
				}
			}
			if d.Generation != row.want {
				t.Errorf("generation %d, want %d", d.Generation, row.want)
			}
		})
	}
}

// DEP-020: what /scale reads and writes.
func TestReplicated(t *testing.T) {
	d := changed(tier("a"))
	d.Status.Replicas = 4
	*Resource.Scale.Desired(d) = ptr.To[int32](7)
	scale, err := Resource.Scale.Of(d)
	if err != nil || scale.Status.Selector != "tier in (a,b)" {
		t.Fatalf("scale %+v, %v", scale, err)
	}
	if scale.Spec.Replicas != 7 || *d.Spec.Replicas != 7 || scale.Status.Replicas != 4 {
		t.Errorf("scale %d of %d", scale.Status.Replicas, scale.Spec.Replicas)
	}
}
