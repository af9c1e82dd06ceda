package rules_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

const zone = corev1.LabelTopologyZone

// twoZones is nodes a and b in zone1, x and y in zone2 and z in none; 2, 1, 0 and 4 Pods of the label app=web run
// there.
func twoZones(t *testing.T) *rulestest.Cluster {
	inZone := func(value string) func(*corev1.Node) { return rulestest.Labelled(zone, value) }
	c := rulestest.New(t, rulestest.Node("a", inZone("1")), rulestest.Node("b", inZone("1")),
		rulestest.Node("x", inZone("2")), rulestest.Node("y", inZone("2")), rulestest.Node("z"))
	for i, node := range []string{"a", "a", "b", "y", "y", "y", "y"} {
		c.Run(rulestest.Pod(string(rune('0'+i)), rulestest.Labelling("app", "web"), rulestest.OnNode(node)))
	}
	return c.Run(rulestest.Pod("db", rulestest.AntiAffinity(corev1.LabelHostname, "app", "web"),
		rulestest.Labelling("app", "db"), rulestest.OnNode("x")))
}

// Rules over domains, each by itself, on five nodes; also where some Pods of node y are taken for gone.
func TestDomainRules(t *testing.T) {
	web := rulestest.Labelling("app", "web")
	spread := func(key string, skew int32) func(*corev1.Pod) {
		return rulestest.Spreading(key, skew, corev1.DoNotSchedule, "app", "web")
	}
	for name, test := range map[string]struct {
		rule    string
		pod     *corev1.Pod
		without []types.UID
		want    map[string]string // why each node is refused
	}{
		"nothing to say": {"Spreading", rulestest.Pod("p"), nil, map[string]string{}},
		"even over zones": {"Spreading", rulestest.Pod("p", web, spread(zone, 1)), nil, map[string]string{
			"x": rulestest.Uneven, "y": rulestest.Uneven, "z": rulestest.NoDomain}},
		"within a skew of two": {"Spreading", rulestest.Pod("p", web, spread(zone, 2)), nil, map[string]string{
			"z": rulestest.NoDomain}},
		"even over hosts": {"Spreading", rulestest.Pod("p", web, spread(corev1.LabelHostname, 1)), nil,
			map[string]string{
				"a": rulestest.Uneven, "b": rulestest.Uneven, "y": rulestest.Uneven}},
		"not one of those that it counts": {"Spreading", rulestest.Pod("p", spread(corev1.LabelHostname, 1)), nil,
			map[string]string{"a": rulestest.Uneven, "y": rulestest.Uneven}},
		"even over zones without two Pods": {"Spreading", rulestest.Pod("p", web, spread(zone, 1)),
			[]types.UID{"uid-3", "uid-4"},
			map[string]string{"x": rulestest.Uneven, "z": rulestest.NoDomain}},
		"apart by zone": {"Apart", rulestest.Pod("p", rulestest.AntiAffinity(zone, "app", "db")), nil,
			map[string]string{
				"x": rulestest.NotApart, "y": rulestest.NotApart}},
		"kept apart": {"Apart", rulestest.Pod("p", web), nil, map[string]string{"x": rulestest.KeptApart}},
		"together by host": {"Together", rulestest.Pod("p", rulestest.Affinity(corev1.LabelHostname, "app", "db")),
			nil,
			map[string]string{"a": rulestest.Alone, "b": rulestest.Alone, "y": rulestest.Alone, "z": rulestest.Alone}},
		"the first of its kind": {"Together", rulestest.Pod("p", rulestest.Labelling("app", "new"),
			rulestest.Affinity(zone, "app", "new")), nil, map[string]string{"z": rulestest.Alone}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, node := range []string{"a", "b", "x", "y", "z"} {
				without := test.without
				if node != "y" {
					without = nil
				}
				for _, text := range twoZones(t).Refusals(ruleOf(test.rule), test.pod, node, without...) {
					got[node] += text
				}
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("refused are %v, want %v", got, test.want)
			}
		})
	}
}

func ruleOf(name string) rules.Rule {
	all := rulestest.DomainRules()
	return all[slices.IndexFunc(all, func(r rules.Rule) bool { return r.Name == name })]
}

// A score over domains is the raw count; nodes without the label count nothing.
func TestDomainScore(t *testing.T) {
	got := twoZones(t).Scores(ruleOf("Spreading"), rulestest.Pod("p",
		rulestest.Spreading(zone, 1, corev1.ScheduleAnyway, "app", "web"),
		rulestest.Spreading(corev1.LabelHostname, 1, corev1.ScheduleAnyway, "app", "web")))
	want := map[string]int64{"a": 3 + 2, "b": 3 + 1, "x": 4, "y": 4 + 4, "z": 0}
	if !maps.Equal(got, want) {
		t.Errorf("scores are %v, want %v", got, want)
	}
}
