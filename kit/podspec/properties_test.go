package podspec

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"
)

// someSpecs calls check with random specs. A failure names the seed, which makes it again.
func someSpecs(t *testing.T, check func(t *testing.T, spec *corev1.PodSpec)) {
	t.Helper()
	for seed := range int64(300) {
		spec := &corev1.PodSpec{}
		// Quantities are filled by hand: a random one has parts that contradict each other.
		randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).
			Funcs(func(q *resource.Quantity, c randfill.Continue) {
				*q = *resource.NewMilliQuantity(c.Int63n(1<<40)-1<<20, resource.DecimalSI)
			}).
			Fill(spec)
		check(t, spec)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestDefaultingIsIdempotent(t *testing.T) {
	someSpecs(t, func(t *testing.T, spec *corev1.PodSpec) {
		SetDefaults(spec)
		once := spec.DeepCopy()
		SetDefaults(spec)
		if !equal(once, spec) {
			t.Error(diff.Diff(once, spec))
		}
	})
}

func TestTemplateDefaultingPrecedesPodDefaulting(t *testing.T) {
	someSpecs(t, func(t *testing.T, spec *corev1.PodSpec) {
		template := &corev1.PodTemplateSpec{Spec: *spec.DeepCopy()}
		SetTemplateDefaults(template)
		SetDefaults(&template.Spec)
		SetDefaults(spec)
		if !equal(&template.Spec, spec) {
			t.Error(diff.Diff(spec, &template.Spec))
		}
	})
}

func TestValidateNeverPanicsNorChanges(t *testing.T) {
	someSpecs(t, func(t *testing.T, spec *corev1.PodSpec) {
		for _, defaulted := range []bool{false, true} {
			if defaulted {
				SetDefaults(spec)
			}
			before := spec.DeepCopy()
			first := texts(Validate(spec, field.NewPath("spec"), Options{}))
			if !equal(before, spec) {
				t.Error("Validate changed the spec")
			}
			if second := texts(Validate(spec, field.NewPath("spec"), Options{})); len(first) != len(second) {
				t.Errorf("first %d errors, then %d", len(first), len(second))
			}
		}
	})
}

func TestDropUnservedIsIdempotent(t *testing.T) {
	someSpecs(t, func(t *testing.T, spec *corev1.PodSpec) {
		DropUnserved(spec)
		once := spec.DeepCopy()
		DropUnserved(spec)
		if !equal(once, spec) {
			t.Error(diff.Diff(once, spec))
		}
	})
}

// A valid Pod whose defaulted fields are erased is the same Pod when it is defaulted again.
func TestADefaultedValidPodStaysValid(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		spec := validSpec(rng)
		SetDefaults(spec)
		if errs := Validate(spec, field.NewPath("spec"), Options{}); len(errs) > 0 {
			t.Fatalf("%v", errs)
		}
		SetDefaults(spec)
		if errs := Validate(spec, field.NewPath("spec"), Options{}); len(errs) > 0 {
			t.Fatalf("valid at first, then %v", errs)
		}
	}
}

// validSpec puts together parts that are each valid.
func validSpec(rng *rand.Rand) *corev1.PodSpec {
	spec := nginx()
	parts := []func(*corev1.PodSpec){
		withVolume(corev1.VolumeSource{}),
		withInit(corev1.Container{Name: "i", Image: "i"}),
		withInit(corev1.Container{Name: "s", Image: "s", RestartPolicy: always, ReadinessProbe: execProbe()}),
		also(corev1.Container{Name: "b", Image: "b:latest", StartupProbe: execProbe()}),
		first(func(c *corev1.Container) {
			c.Resources.Limits = quantities("cpu", "1", "memory", "1Gi", "example.com/gpu", "1")
		}),
		first(func(c *corev1.Container) {
			c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: httpGet(80)}}
		}),
		func(s *corev1.PodSpec) { s.HostNetwork = true },
		func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever },
		func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
		fieldRef("status.podIP"),
	}
	for _, part := range parts {
		if rng.IntN(2) == 0 {
			part(spec)
		}
	}
	return spec
}
