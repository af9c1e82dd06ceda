package nodeaffinity_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/nodeaffinity"
	"keelson.dev/services/scheduler/internal/rulestest"
)

const (
	in, notIn          = corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn
	exists, absent     = corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist
	greater, less      = corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt
	refused            = "node(s) didn't match Pod's node affinity/selector"
	hostname, osStable = corev1.LabelHostname, corev1.LabelOSStable
)

var (
	rule       = nodeaffinity.Rule()
	expression = rulestest.Expression
	named      = rulestest.Named
)

func requiring(terms ...corev1.NodeSelectorTerm) []func(*corev1.Pod) {
	return []func(*corev1.Pod){rulestest.Requiring(terms...)}
}

func selecting(key, value string) []func(*corev1.Pod) {
	return []func(*corev1.Pod){rulestest.Selecting(key, value)}
}

// The node n has the labels size=5 and those of every node.
func TestFilter(t *testing.T) {
	for name, test := range map[string]struct {
		pod     []func(*corev1.Pod)
		refused bool
		on      rules.Dependency
	}{
		"POD-035: selector on the OS":  {selecting(osStable, "windows"), true, rules.OnShape},
		"POD-035: selector on its OS":  {selecting(osStable, "linux"), false, rules.OnShape},
		"selector on a label it lacks": {selecting("disk", "ssd"), true, rules.OnShape},
		"hostname selector":            {selecting(hostname, "n"), false, rules.OnName},
		"another hostname":             {selecting(hostname, "m"), true, rules.OnName},
		"hostname and another label": {append(selecting(hostname, "n"), requiring(expression("disk", exists))...),
			true, rules.OnName},
		"SET-134, SET-133: names it":    {requiring(named(in, "n")), false, rules.OnName},
		"SET-134: names another":        {requiring(named(in, "m")), true, rules.OnName},
		"matchFields excludes the node": {requiring(named(notIn, "n")), true, rules.OnName},
		"terms are ORed": {requiring(named(in, "m"), expression(osStable, exists)), false,
			rules.OnName},
		"an empty term matches nothing": {requiring(corev1.NodeSelectorTerm{}), true, rules.OnShape},
		"no term matches nothing":       {requiring(), true, rules.OnShape},
		"NotIn":                         {requiring(expression(osStable, notIn, "linux")), true, rules.OnShape},
		"DoesNotExist":                  {requiring(expression("disk", absent)), false, rules.OnShape},
		"Gt":                            {requiring(expression("size", greater, "4")), false, rules.OnShape},
		"Gt is not at least":            {requiring(expression("size", greater, "5")), true, rules.OnShape},
		"Lt":                            {requiring(expression("size", less, "6")), false, rules.OnShape},
		"Lt is not at most":             {requiring(expression("size", less, "5")), true, rules.OnShape},
		"an expression over hostnames":  {requiring(expression(hostname, notIn, "m")), false, rules.OnName},
		"an operator that nobody knows": {requiring(expression(osStable, "Like", "linux")), true, rules.OnShape},
		"another term over hostnames": {requiring(expression("disk", exists), expression(hostname, in, "n")), false,
			rules.OnName},
		"a selector and a required term": {append(selecting(osStable, "linux"),
			requiring(expression("size", in, "5"))...), false, rules.OnShape},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if test.refused {
				want = []string{refused}
			}
			c := rulestest.New(t, rulestest.Node("n", rulestest.Labelled("size", "5")))
			p := rulestest.Pod("p", test.pod...)
			if got := c.Refusals(rule, p, "n"); !slices.Equal(got, want) {
				t.Errorf("refused for %q, want %q", got, want)
			}
			if got := rule.Filter(c.Subject(p)).Judge.On(); got != test.on {
				t.Errorf("depends on %v, want %v", got, test.on)
			}
		})
	}
	c := rulestest.New(t)
	for name, p := range map[string]*corev1.Pod{
		"nothing":           rulestest.Pod("p"),
		"a preference":      rulestest.Pod("p", rulestest.Preferring(1, expression("disk", exists))),
		"an affinity to no": rulestest.Pod("p", func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{} }),
	} {
		if f := rule.Filter(c.Subject(p)); f != nil {
			t.Errorf("%s makes a filter", name)
		}
	}
}

// The nodes outside of which a Pod certainly matches none.
func TestPins(t *testing.T) {
	many := func(n int) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprint("n", i)
		}
		return names
	}
	both := named(in, "a")
	both.MatchExpressions = expression(hostname, in, "h").MatchExpressions
	for name, test := range map[string]struct {
		pod  []func(*corev1.Pod)
		want *rules.Pins
	}{
		"a hostname selector":          {selecting(hostname, "h"), &rules.Pins{Hostnames: []string{"h"}}},
		"another selector":             {selecting("disk", "ssd"), nil},
		"SET-134: a daemon Pod's term": {requiring(named(in, "n")), &rules.Pins{Names: []string{"n"}}},
		"several names": {requiring(named(in, "a", "b"), named(in, "c")),
			&rules.Pins{Names: []string{"a", "b", "c"}}},
		"names and hostnames": {requiring(named(in, "a"), expression(hostname, in, "h")),
			&rules.Pins{Names: []string{"a"}, Hostnames: []string{"h"}}},
		"both in one term":            {requiring(both), &rules.Pins{Names: []string{"a"}}},
		"a term without a name":       {requiring(named(in, "a"), expression("disk", exists)), nil},
		"a name that is excluded":     {requiring(named(notIn, "a")), nil},
		"a hostname that is excluded": {requiring(expression(hostname, notIn, "h")), nil},
		"a term that matches nothing": {requiring(corev1.NodeSelectorTerm{}, named(in, "a")),
			&rules.Pins{Names: []string{"a"}}},
		"only that":       {requiring(corev1.NodeSelectorTerm{}), &rules.Pins{}},
		"16 names":        {requiring(named(in, many(16)...)), &rules.Pins{Names: many(16)}},
		"17 names":        {requiring(named(in, many(17)...)), nil},
		"17 in two terms": {requiring(named(in, many(9)...), expression(hostname, in, many(8)...)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := rule.Filter(rulestest.New(t).Subject(rulestest.Pod("p", test.pod...)))
			if !reflect.DeepEqual(f.Pins, test.want) {
				t.Errorf("confined to %+v, want %+v", f.Pins, test.want)
			}
		})
	}
}

// The raw score is the sum of the weights of the preferred terms that match. SCH-138
func TestScore(t *testing.T) {
	c := rulestest.New(t, rulestest.Node("n", rulestest.Labelled("a", "1"), rulestest.Labelled("b", "1")),
		rulestest.Node("m", rulestest.Labelled("a", "1")))
	for name, test := range map[string]struct {
		pod  []func(*corev1.Pod)
		want map[string]int64
		on   rules.Dependency
	}{
		"one term": {[]func(*corev1.Pod){rulestest.Preferring(7, expression("b", in, "1"))},
			map[string]int64{"n": 7, "m": 0}, rules.OnShape},
		"weights add up": {[]func(*corev1.Pod){rulestest.Preferring(30, expression("a", exists)),
			rulestest.Preferring(50, expression("b", exists))},
			map[string]int64{"n": 80, "m": 30}, rules.OnShape},
		"a hostname": {[]func(*corev1.Pod){rulestest.Preferring(1, expression(hostname, in, "m"))},
			map[string]int64{"n": 0, "m": 1}, rules.OnName},
		"a name": {[]func(*corev1.Pod){rulestest.Preferring(5, expression("c", exists)),
			rulestest.Preferring(1, named(in, "n"))},
			map[string]int64{"n": 1, "m": 0}, rules.OnName},
	} {
		t.Run(name, func(t *testing.T) {
			p := rulestest.Pod("p", test.pod...)
			if got := c.Scores(rule, p); !maps.Equal(got, test.want) {
				t.Errorf("scores are %v, want %v", got, test.want)
			}
			if s := rule.Score(c.Subject(p)); s.Judge.On() != test.on || s.Order != rules.HigherIsBetter {
				t.Errorf("depends on %v, in order %v", s.Judge.On(), s.Order)
			}
		})
	}
	for name, p := range map[string]*corev1.Pod{
		"no preference":    rulestest.Pod("p", requiring(expression("a", exists))...),
		"a broken term":    rulestest.Pod("p", rulestest.Preferring(1, expression("a", "Like", "x"))),
		"no node affinity": rulestest.Pod("p", func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{} }),
	} {
		if got := c.Scores(rule, p); len(got) > 0 && (got["n"] != 0 || got["m"] != 0) {
			t.Errorf("%s: scores are %v", name, got)
		}
	}
}

func TestKey(t *testing.T) {
	two := func(a, b string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"a": a, "b": b} }
	}
	base := rulestest.Pod("p", two("1", "2"))
	for range 20 { // a map has no order
		if !rulestest.SameClass(rule, base, rulestest.Pod("q", two("1", "2"))) {
			t.Fatal("equal selectors make two classes")
		}
	}
	for name, other := range map[string]*corev1.Pod{
		"a value":          rulestest.Pod("p", two("1", "3")),
		"where values end": rulestest.Pod("p", two("1b", "2")),
		"swapped":          rulestest.Pod("p", two("2", "1")),
		"a required term":  rulestest.Pod("p", two("1", "2"), rulestest.Requiring(expression("a", exists))),
		"a preferred term": rulestest.Pod("p", two("1", "2"), rulestest.Preferring(1, expression("a", exists))),
	} {
		if rulestest.SameClass(rule, base, other) {
			t.Errorf("%s: unlike Pods are of one class", name)
		}
	}
}

// What a profile adds is required, and preferred, of every Pod, in addition to what it asks for itself.
func TestAddedAffinity(t *testing.T) {
	has := func(key, value string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}
	}
	rule := nodeaffinity.WithAdded(&corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{has("pool", "a")}},
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 7, Preference: has("disk", "ssd")}}})
	c := rulestest.New(t, rulestest.Node("other"), rulestest.Node("a", rulestest.Labelled("pool", "a")),
		rulestest.Node("both", rulestest.Labelled("pool", "a"), rulestest.Labelled("disk", "ssd")))
	plain, asking := rulestest.Pod("p"), rulestest.Pod("q", rulestest.Selecting("disk", "ssd"))
	const enforced, own = "node(s) didn't match scheduler-enforced node affinity",
		"node(s) didn't match Pod's node affinity/selector"
	for _, test := range []struct {
		pod  *corev1.Pod
		node string
		want []string
	}{{plain, "other", []string{enforced}}, {plain, "a", nil}, {asking, "other", []string{enforced}},
		{asking, "a", []string{own}}, {asking, "both", nil}} {
		if got := c.Refusals(rule, test.pod, test.node); !slices.Equal(got, test.want) {
			t.Errorf("%s on %s is refused for %q, want %q", test.pod.Name, test.node, got, test.want)
		}
	}
	// By a hostname no node is left out unseen, by a name it is.
	for name, p := range map[bool]*corev1.Pod{true: rulestest.Pod("p", rulestest.Selecting(hostname, "a")),
		false: rulestest.Pod("p", rulestest.Requiring(named(in, "a")))} {
		if pins := rule.Filter(c.Subject(p)).Pins; pins == nil || pins.Judged != name {
			t.Errorf("pins are %+v, judged should be %v", pins, name)
		}
	}
	if got := c.Scores(rule, plain); got["both"] != 7 || got["a"] != 0 {
		t.Errorf("scores are %v", got)
	}
}
