package tainttoleration_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/tainttoleration"
	"keelson.dev/services/scheduler/internal/rulestest"
)

var (
	controlPlane = corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
	notReady     = corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}
)

func exists(key string, effect corev1.TaintEffect) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
}

func prefer(key string) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectPreferNoSchedule}
}

func TestFilter(t *testing.T) {
	valued := corev1.Taint{Key: "k", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		refused     bool
	}{
		"no taint":                  {nil, nil, false},
		"SET-124: taint NoSchedule": {[]corev1.Taint{controlPlane}, nil, true},
		"SET-123: tolerated": {[]corev1.Taint{controlPlane},
			[]corev1.Toleration{exists(controlPlane.Key, corev1.TaintEffectNoSchedule)}, false},
		"taint NoExecute keeps new Pods away": {[]corev1.Taint{notReady}, nil, true},
		"SET-146, SET-147: daemon Pods tolerate it": {[]corev1.Taint{notReady},
			[]corev1.Toleration{exists(notReady.Key, corev1.TaintEffectNoExecute)}, false},
		"a toleration of another effect": {[]corev1.Taint{notReady},
			[]corev1.Toleration{exists(notReady.Key, corev1.TaintEffectNoSchedule)}, true},
		"an empty key tolerates everything": {[]corev1.Taint{notReady, controlPlane},
			[]corev1.Toleration{exists("", "")}, false},
		"one of two taints tolerated": {[]corev1.Taint{notReady, controlPlane},
			[]corev1.Toleration{exists(notReady.Key, "")}, true},
		"both taints tolerated by two": {[]corev1.Taint{notReady, controlPlane},
			[]corev1.Toleration{exists(notReady.Key, ""), exists(controlPlane.Key, "")}, false},
		"PreferNoSchedule only prefers": {[]corev1.Taint{prefer("k")}, nil, false},
		"a value that differs": {[]corev1.Taint{valued},
			[]corev1.Toleration{{Key: "k", Value: "b"}}, true},
		"the same value": {[]corev1.Taint{valued},
			[]corev1.Toleration{{Key: "k", Value: "a"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if test.refused {
				want = []string{"node(s) had untolerated taint(s)"}
			}
			c := rulestest.New(t, rulestest.Node("n", rulestest.Tainted(test.taints...)))
			p := rulestest.Pod("p", rulestest.Tolerating(test.tolerations...))
			if got := c.Refusals(tainttoleration.Rule(), p, "n"); !slices.Equal(got, want) {
				t.Errorf("refused for %q, want %q", got, want)
			}
		})
	}
}

// The raw score is the number of taints PreferNoSchedule that are not tolerated: the fewer, the better. SCH-138
func TestScore(t *testing.T) {
	c := rulestest.New(t, rulestest.Node("none"), rulestest.Node("one", rulestest.Tainted(prefer("a"), controlPlane)),
		rulestest.Node("two", rulestest.Tainted(prefer("a"), prefer("b"))))
	for name, test := range map[string]struct {
		tolerations []corev1.Toleration
		want        map[string]int64
	}{
		"tolerates nothing": {nil, map[string]int64{"none": 0, "one": 1, "two": 2}},
		"tolerates one":     {[]corev1.Toleration{exists("a", "")}, map[string]int64{"none": 0, "one": 0, "two": 1}},
		"tolerates NoExecute": {[]corev1.Toleration{exists("a", corev1.TaintEffectNoExecute)},
			map[string]int64{"none": 0, "one": 1, "two": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.Scores(tainttoleration.Rule(),
				rulestest.Pod("p", rulestest.Tolerating(test.tolerations...))); !maps.Equal(got, test.want) {
				t.Errorf("scores are %v, want %v", got, test.want)
			}
		})
	}
	if order := tainttoleration.Rule().Score(c.Subject(rulestest.Pod("p"))).Order; order != rules.LowerIsBetter {
		t.Errorf("order is %v", order)
	}
}

// Every field of a toleration makes a class of its own.
func TestKey(t *testing.T) {
	base := corev1.Toleration{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v",
		Effect: corev1.TaintEffectNoSchedule}
	tolerating := func(change func(*corev1.Toleration)) *corev1.Pod {
		changed := base
		change(&changed)
		return rulestest.Pod("p", rulestest.Tolerating(changed))
	}
	p := tolerating(func(*corev1.Toleration) {})
	if !rulestest.SameClass(tainttoleration.Rule(), p, tolerating(func(*corev1.Toleration) {})) {
		t.Error("equal Pods are of two classes")
	}
	for name, change := range map[string]func(*corev1.Toleration){
		"key":              func(x *corev1.Toleration) { x.Key = "l" },
		"operator":         func(x *corev1.Toleration) { x.Operator = corev1.TolerationOpExists },
		"value":            func(x *corev1.Toleration) { x.Value = "w" },
		"effect":           func(x *corev1.Toleration) { x.Effect = "" },
		"where fields end": func(x *corev1.Toleration) { x.Key, x.Operator = "kE", "qual" },
	} {
		if rulestest.SameClass(tainttoleration.Rule(), p, tolerating(change)) {
			t.Errorf("%s: unlike Pods are of one class", name)
		}
	}
}

// Operators Gt and Lt compare the taint's value with the toleration's, as numbers.
func TestNumericOperators(t *testing.T) {
	for name, test := range map[string]struct {
		taint, value string
		operator     corev1.TolerationOperator
		tolerated    bool
	}{
		"above":         {"10", "9", corev1.TolerationOpGt, true},
		"not above":     {"9", "9", corev1.TolerationOpGt, false},
		"below":         {"9", "10", corev1.TolerationOpLt, true},
		"not below":     {"10", "10", corev1.TolerationOpLt, false},
		"below nothing": {"-1", "0", corev1.TolerationOpLt, true},
		"no number":     {"many", "0", corev1.TolerationOpGt, false},
	} {
		c := rulestest.New(t, rulestest.Node("n", rulestest.Tainted(corev1.Taint{Key: "k", Value: test.taint,
			Effect: corev1.TaintEffectNoSchedule})))
		p := rulestest.Pod("p", rulestest.Tolerating(corev1.Toleration{Key: "k", Operator: test.operator,
			Value: test.value}))
		if got := c.Refusals(tainttoleration.Rule(), p, "n"); (got == nil) != test.tolerated {
			t.Errorf("%s: refused for %q", name, got)
		}
	}
}
