package deployment

import (
	"fmt"
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// anyDeployment makes a Deployment with each optional field given or left out, valid or not.
func anyDeployment(r *rand.Rand) *appsv1.Deployment {
	d := minimal()
	spec := &d.Spec
	small := func() *int32 {
		if r.IntN(3) == 0 {
			return nil
		}
		return ptr.To(r.Int32N(20) - 2)
	}
	spec.Replicas, spec.RevisionHistoryLimit, spec.ProgressDeadlineSeconds = small(), small(), small()
	spec.MinReadySeconds = r.Int32N(6) - 1
	spec.Strategy.Type = []appsv1.DeploymentStrategyType{"", "Recreate", "RollingUpdate", "Other"}[r.IntN(4)]
	if r.IntN(2) == 0 {
		spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: anyBound(r),
			MaxUnavailable: anyBound(r)}
	}
	spec.Template.Labels["app"] = []string{"web", "web", "web", "other"}[r.IntN(4)]
	return d
}

func anyBound(r *rand.Rand) *intstr.IntOrString {
	switch r.IntN(3) {
	case 0:
		return nil
	case 1:
		return ptr.To(intstr.FromInt32(r.Int32N(4) - 1))
	}
	return ptr.To(intstr.FromString(fmt.Sprintf("%d%%", r.IntN(120))))
}

// Whatever is written: defaults applied twice are the same as once, the checks change nothing and answer the same
// twice, and what is accepted can be written again as it is, without a new generation.
func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	writes, accepted := Resource.ObjectWrites(), 0
	for i := range 3000 {
		d := anyDeployment(r)
		Default(d)
		once := d.DeepCopy()
		Default(d)
		if !equality.Semantic.DeepEqual(d, once) {
			t.Fatalf("run %d: defaults are not idempotent:\n%+v\n%+v", i, once.Spec, d.Spec)
		}
		first, second := Validate(d), Validate(d)
		if fmt.Sprint(first) != fmt.Sprint(second) || !equality.Semantic.DeepEqual(d, once) {
			t.Fatalf("run %d: the check is not pure: %v, %v", i, first, second)
		}
		if len(first) > 0 {
			continue
		}
		accepted++
		writes.PrepareForCreate(d)
		again := d.DeepCopy()
		writes.PrepareForUpdate(again, d)
		if errs := ValidateUpdate(again, d); len(errs) > 0 || again.Generation != d.Generation {
			t.Fatalf("run %d: an accepted Deployment cannot be written again: %v, generation %d", i, errs,
				again.Generation)
		}
	}
	if accepted < 100 {
		t.Errorf("only %d of the Deployments were valid: the test shows too little", accepted)
	}
}
