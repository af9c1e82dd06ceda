package pod

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"
)

// somePod is a random Pod that the seed makes again.
func somePod(seed int64) *corev1.Pod {
	p := &corev1.Pod{}
	randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).
		Funcs(func(q *apiresource.Quantity, c randfill.Continue) {
			*q = *apiresource.NewMilliQuantity(c.Int63n(1<<40), apiresource.DecimalSI)
		}).
		Fill(p)
	Default(p)
	return p
}

const seeds = 100

// Whatever is stored: an update that changes nothing is never refused for what it changes.
func TestNoUpdateIsNoChange(t *testing.T) {
	for seed := range int64(seeds) {
		old := somePod(seed)
		for name, errs := range map[string]field.ErrorList{
			"update": ValidateUpdate(old.DeepCopy(), old), "ephemeral": ValidateEphemeralUpdate(old.DeepCopy(), old),
		} {
			for _, err := range errs {
				if text := err.Error(); strings.Contains(text, "pod updates may not") ||
					strings.Contains(text, "may not be changed") || strings.Contains(text, "may not be removed") {
					t.Errorf("seed %d, %s: %s", seed, name, text)
				}
			}
		}
	}
}

// No Pod, and no pair of Pods, makes a rule panic, change the stored Pod or answer twice differently.
func TestRulesOnRandomPods(t *testing.T) {
	for seed := range int64(seeds) {
		p, old := somePod(seed), somePod(seed+seeds)
		before := old.DeepCopy()
		for name, rule := range map[string]func(p, old *corev1.Pod) field.ErrorList{
			"create": func(p, _ *corev1.Pod) field.ErrorList { objectWrites.PrepareForCreate(p); return Validate(p) },
			"update": func(p, old *corev1.Pod) field.ErrorList {
				objectWrites.PrepareForUpdate(p, old)
				return ValidateUpdate(p, old)
			},
			"status": func(p, old *corev1.Pod) field.ErrorList {
				statusWrites.PrepareForUpdate(p, old)
				return ValidateStatusUpdate(p, old)
			},
			"ephemeral": func(p, old *corev1.Pod) field.ErrorList {
				prepareForEphemeralUpdate(p, old)
				return ValidateEphemeralUpdate(p, old)
			},
		} {
			if first, second := len(rule(p.DeepCopy(), old)), len(rule(p.DeepCopy(), old)); first != second {
				t.Errorf("seed %d, %s: %d errors, then %d", seed, name, first, second)
			}
		}
		if !apiequality.Semantic.DeepEqual(old, before) {
			t.Errorf("seed %d: the stored Pod was changed", seed)
		}
		if cells := columns.Row(p, now.Time); len(cells) != len(columns.Headings()) {
			t.Errorf("seed %d: %d cells for %d columns", seed, len(cells), len(columns.Headings()))
		}
	}
}

// The class of service is one of three, and does not depend on the order of the containers.
func TestQOSClassIgnoresOrder(t *testing.T) {
	for seed := range int64(seeds) {
		p := somePod(seed)
		class := qosClass(&p.Spec)
		slices.Reverse(p.Spec.Containers)
		slices.Reverse(p.Spec.InitContainers)
		if again := qosClass(&p.Spec); again != class {
			t.Errorf("seed %d: %s, then %s", seed, class, again)
		}
	}
}
