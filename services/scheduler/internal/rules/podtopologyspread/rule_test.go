package podtopologyspread_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/podtopologyspread"
	"keelson.dev/services/scheduler/internal/rulestest"
)

const (
	zone    = corev1.LabelTopologyZone
	host    = corev1.LabelHostname
	noLabel = "node(s) didn't match pod topology spread constraints (missing required label)"
	uneven  = "node(s) didn't match pod topology spread constraints"
)

var web = rulestest.Labelling("app", "web")

// fiveNodes is nodes a and b in zone 1, x and y in zone 2 and z in none; 2, 1, 0 and 4 Pods of the label app=web run
// there, and one of another namespace on x. The nodes of zone 1 are tainted.
func fiveNodes(t *testing.T) *rulestest.Cluster {
	in := func(value string) func(*corev1.Node) { return rulestest.Labelled(zone, value) }
	tainted := rulestest.Tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})
	c := rulestest.New(t, rulestest.Node("a", in("1"), tainted), rulestest.Node("b", in("1"), tainted),
		rulestest.Node("x", in("2")), rulestest.Node("y", in("2")), rulestest.Node("z"))
	for i, node := range []string{"a", "a", "b", "y", "y", "y", "y"} {
		c.Run(rulestest.Pod(string(rune('0'+i)), web, rulestest.OnNode(node)))
	}
	return c.Run(rulestest.Pod("away", web, rulestest.OnNode("x"), func(p *corev1.Pod) { p.Namespace = "other" }))
}

type constraint = corev1.TopologySpreadConstraint

// over spreads a Pod over the domains of a key, among the Pods of the label app=web.
func over(key string, skew int32, change ...func(*constraint)) func(*corev1.Pod) {
	c := constraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	for _, f := range change {
		f(&c)
	}
	return func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c) }
}

func atLeast(domains int32) func(*constraint) { return func(c *constraint) { c.MinDomains = &domains } }

func softly(c *constraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }

func TestFilter(t *testing.T) {
	ofVersion := rulestest.Labelling("version", "2")
	inZone2 := rulestest.Selecting(zone, "2")
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want map[string]string // why each node is refused
	}{
		"no constraint": {rulestest.Pod("p", web), map[string]string{}},
		"a soft one":    {rulestest.Pod("p", web, over(zone, 1, softly)), map[string]string{}},
		"a skew of one": {rulestest.Pod("p", web, over(zone, 1)), map[string]string{"x": uneven, "y": uneven,
			"z": noLabel}},
		"a skew of two":             {rulestest.Pod("p", web, over(zone, 2)), map[string]string{"z": noLabel}},
		"a Pod that does not count": {rulestest.Pod("p", over(zone, 1)), map[string]string{"z": noLabel}},
		"hosts": {rulestest.Pod("p", web, over(host, 2)), map[string]string{"a": uneven,
			"y": uneven}},
		"as many domains as asked": {rulestest.Pod("p", web, over(zone, 3, atLeast(2))),
			map[string]string{"z": noLabel}},
		"too few domains": {rulestest.Pod("p", web, over(zone, 3, atLeast(3))), map[string]string{"a": uneven,
			"b": uneven, "x": uneven, "y": uneven, "z": noLabel}},
		"too few domains, and room for one": {rulestest.Pod("p", web, over(zone, 4, atLeast(3))), map[string]string{
			"x": uneven, "y": uneven, "z": noLabel}},
		"two constraints": {rulestest.Pod("p", web, over(zone, 2), over(host, 2)), map[string]string{"a": uneven,
			"y": uneven, "z": noLabel}},
		"only where it may go": {rulestest.Pod("p", web, inZone2, over(zone, 1)), map[string]string{
			"z": noLabel}},
		"also where it may not go": {rulestest.Pod("p", web, inZone2, over(zone, 1, func(c *constraint) {
			c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
		})), map[string]string{"x": uneven, "y": uneven, "z": noLabel}},
		"not over tainted nodes": {rulestest.Pod("p", web, over(zone, 1, func(c *constraint) {
			c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
		})), map[string]string{"z": noLabel}},
		"among those of its version": {rulestest.Pod("p", web, ofVersion, over(zone, 1, func(c *constraint) {
			c.MatchLabelKeys = []string{"version"}
		})), map[string]string{"z": noLabel}},
		"a key that it has not": {rulestest.Pod("p", web, over(zone, 1, func(c *constraint) {
			c.MatchLabelKeys = []string{"version"}
		})), map[string]string{"x": uneven, "y": uneven, "z": noLabel}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, node := range []string{"a", "b", "x", "y", "z"} {
				for _, text := range fiveNodes(t).Refusals(podtopologyspread.Rule(podtopologyspread.Defaults{}),
					test.pod, node) {
					got[node] += text
				}
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("refused are %v, want %v", got, test.want)
			}
		})
	}
}

// A Pod whose constraint cannot be read goes nowhere and says so.
func TestUnread(t *testing.T) {
	p := rulestest.Pod("p", over(zone, 1, func(c *constraint) {
		c.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}
	}))
	got := fiveNodes(t).Refusals(podtopologyspread.Rule(podtopologyspread.Defaults{}), p, "a")
	want := `the Pod's topologySpreadConstraints cannot be read: "Like" is not a valid label selector operator`
	if len(got) != 1 || got[0] != want {
		t.Errorf("refused for %q, want %q", got, want)
	}
}

// The raw score is the Pods in the domain, times the logarithm of how many domains can take the Pod (here it is judged
// as if none could) and two, and what of the skew is beyond one.
func TestScore(t *testing.T) {
	system := podtopologyspread.Rule(podtopologyspread.SystemDefaults())
	grouped := labels.SelectorFromSet(labels.Set{"app": "web"})
	none := podtopologyspread.Rule(podtopologyspread.Defaults{})
	for name, test := range map[string]struct {
		rule  rules.Rule
		group labels.Selector
		pod   *corev1.Pod
		want  map[string]int64
	}{
		"zones": {none, nil, rulestest.Pod("p", web, over(zone, 1, softly)),
			map[string]int64{"a": 2, "b": 2, "x": 3, "y": 3, "z": 0}}, // 3 and 4 times ln 2
		"with a skew": {none, nil, rulestest.Pod("p", web, over(zone, 3, softly)),
			map[string]int64{"a": 4, "b": 4, "x": 5, "y": 5, "z": 0}},
		"a hard one":            {none, nil, rulestest.Pod("p", web, over(zone, 1)), nil},
		"defaults, of no group": {system, nil, rulestest.Pod("p", web), nil},
		"defaults, of its group": {system, grouped, rulestest.Pod("p", web),
			map[string]int64{"a": 9, "b": 9, "x": 9, "y": 12, "z": 2}},
		"none by default":         {none, grouped, rulestest.Pod("p", web), nil},
		"its own come before any": {system, labels.Everything(), rulestest.Pod("p", web, over(zone, 1)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := fiveNodes(t).Grouped(test.group).Scores(test.rule, test.pod)
			if !maps.Equal(got, test.want) {
				t.Errorf("scores are %v, want %v", got, test.want)
			}
		})
	}
}
