package dynamicresources_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
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
	if got := c.Refusals(rule, rulestest.Pod("p", claiming("gpu")), "n"); !slices.Equal(got,
		[]string{podview.Unprepared}) {
		t.Errorf("refused for %q", got)
	}
	kept := c.Subject(rulestest.Pod("p", claiming("gpu")))
	if kept.Devices = "ResourceClaim gpu does not exist"; !slices.Equal(rule.Filter(kept).Texts,
		[]string{kept.Devices}) {
		t.Errorf("says %q", rule.Filter(kept).Texts)
	}
	if string(rule.Key(nil, kept)) == string(rule.Key(nil, c.Subject(rulestest.Pod("p", claiming("gpu"))))) {
		t.Error("Pods of which something else is said are one class")
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
