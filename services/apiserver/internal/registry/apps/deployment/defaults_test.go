package deployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

// DEP-007, DEP-008, DEP-009, DEP-011, DEP-012, DEP-108, DEP-128, DEP-142, DEP-061: a minimal Deployment is accepted and
// reads back with these values.
func TestDefaultMinimal(t *testing.T) {
	d := changed()
	fieldtest.Check(t, Validate(d))
	spec := d.Spec
	for _, row := range []struct {
		name      string
		got, want any
	}{
		{"DEP-008 replicas", *spec.Replicas, int32(1)},
		{"DEP-008 strategy", spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType},
		{"DEP-061 maxUnavailable", spec.Strategy.RollingUpdate.MaxUnavailable.String(), "25%"},
		{"DEP-061 maxSurge", spec.Strategy.RollingUpdate.MaxSurge.String(), "25%"},
		{"DEP-142 revisionHistoryLimit", *spec.RevisionHistoryLimit, int32(10)},
		{"DEP-128 progressDeadlineSeconds", *spec.ProgressDeadlineSeconds, int32(600)},
		{"DEP-008 minReadySeconds", spec.MinReadySeconds, int32(0)},
		{"DEP-108 paused", spec.Paused, false},
		{"DEP-009 restartPolicy", spec.Template.Spec.RestartPolicy, corev1.RestartPolicyAlways},
		{"DEP-009 Pod defaults", *spec.Template.Spec.TerminationGracePeriodSeconds, int64(30)},
		{"DEP-012 labels", len(d.Labels), 0},
	} {
		if row.got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, row.got, row.want)
		}
	}
}

func TestDefaultKeepsWhatIsGiven(t *testing.T) {
	t.Run("DEP-012 no selector is made up", func(t *testing.T) {
		d := changed(func(d *appsv1.Deployment) { d.Spec.Selector = nil })
		if d.Spec.Selector != nil {
			t.Errorf("selector %v", d.Spec.Selector)
		}
	})
	t.Run("DEP-011 explicit zero replicas", func(t *testing.T) {
		if d := changed(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) }); *d.Spec.Replicas != 0 {
			t.Errorf("replicas %d", *d.Spec.Replicas)
		}
	})
	t.Run("DEP-061 each bound defaults on its own and keeps its form", func(t *testing.T) {
		d := changed(func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(0))}
		})
		bounds := d.Spec.Strategy.RollingUpdate
		if bounds.MaxSurge.Type != intstr.Int || bounds.MaxSurge.IntVal != 0 || bounds.MaxUnavailable.StrVal != "25%" {
			t.Errorf("bounds %v, %v", bounds.MaxSurge, bounds.MaxUnavailable)
		}
	})
	t.Run("DEP-073 Recreate gets no rollingUpdate", func(t *testing.T) {
		d := changed(func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType })
		if d.Spec.Strategy.RollingUpdate != nil {
			t.Errorf("rollingUpdate %v", d.Spec.Strategy.RollingUpdate)
		}
	})
}
