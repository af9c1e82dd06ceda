package dynamicresources_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rules/dynamicresources"
	"keelson.dev/services/scheduler/internal/rulestest"
)

func claiming(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name})
		}
	}
}

func TestFilter(t *testing.T) {
	c := rulestest.New(t, rulestest.Node("n"))
	rule := dynamicresources.Rule()
	const want = "nobody allocates the Pod's ResourceClaims: resource.k8s.io is not served by this cluster"
	if got := c.Refusals(rule, rulestest.Pod("p", claiming("gpu")), "n"); !slices.Equal(got, []string{want}) {
		t.Errorf("refused for %q", got)
	}
	if f := rule.Filter(c.Subject(rulestest.Pod("q"))); f != nil {
		t.Error("a Pod without claims has a filter")
	}
	if f := rule.Filter(c.Subject(rulestest.Pod("p", claiming("gpu")))); !f.Whole {
		t.Error("the reason is told as that of some nodes")
	}
	if rulestest.SameClass(rule, rulestest.Pod("p", claiming("gpu")), rulestest.Pod("q")) ||
		!rulestest.SameClass(rule, rulestest.Pod("p", claiming("gpu")), rulestest.Pod("q", claiming("a", "b"))) {
		t.Error("Pods with claims are one class, and those without another")
	}
}
