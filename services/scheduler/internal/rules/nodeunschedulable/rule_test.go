package nodeunschedulable_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rules/nodeunschedulable"
	"keelson.dev/services/scheduler/internal/rulestest"
)

func TestFilter(t *testing.T) {
	tolerating := func(key string, effect corev1.TaintEffect) func(*corev1.Pod) {
		return rulestest.Tolerating(corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	const cordoned = "node(s) were unschedulable"
	for name, test := range map[string]struct {
		node   string
		change func(*corev1.Pod)
		want   []string
	}{
		"a node":                            {"n", func(*corev1.Pod) {}, nil},
		"SAF-052, SAF-057: a cordoned node": {"c", func(*corev1.Pod) {}, []string{cordoned}},
		"SET-142: daemon Pods go to cordoned nodes": {"c", tolerating(corev1.TaintNodeUnschedulable,
			corev1.TaintEffectNoSchedule), nil},
		"any effect": {"c", tolerating(corev1.TaintNodeUnschedulable, ""), nil},
		"everything": {"c", tolerating("", ""), nil},
		"another effect is no leave": {"c", tolerating(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoExecute),
			[]string{cordoned}},
		"another taint is no leave": {"c", tolerating(corev1.TaintNodeNotReady, ""), []string{cordoned}},
	} {
		t.Run(name, func(t *testing.T) {
			c := rulestest.New(t, rulestest.Node("n"), rulestest.Node("c", rulestest.Cordoned))
			if got := c.Refusals(nodeunschedulable.Rule(), rulestest.Pod("p", test.change),
				test.node); !slices.Equal(got, test.want) {
				t.Errorf("refused for %q, want %q", got, test.want)
			}
		})
	}
	if rulestest.SameClass(nodeunschedulable.Rule(), rulestest.Pod("p"), rulestest.Pod("p", tolerating("k", ""))) {
		t.Error("Pods of unlike tolerations are of one class")
	}
}
