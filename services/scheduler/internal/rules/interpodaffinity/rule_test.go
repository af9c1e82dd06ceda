package interpodaffinity_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/scheduler/internal/rules/interpodaffinity"
	"keelson.dev/services/scheduler/internal/rulestest"
)

const (
	zone     = corev1.LabelTopologyZone
	host     = corev1.LabelHostname
	alone    = "node(s) didn't match pod affinity rules"
	notApart = "node(s) didn't match pod anti-affinity rules"
	repelled = "node(s) didn't satisfy existing pods anti-affinity rules"
)

var byDefault = interpodaffinity.Rule(interpodaffinity.Default())

type term = corev1.PodAffinityTerm

// to selects Pods with the label app of that value, in the domains of a key.
func to(key, app string, change ...func(*term)) term {
	t := term{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	for _, f := range change {
		f(&t)
	}
	return t
}

func with(terms ...term) func(*corev1.Pod) {
	return affine(func(a, _ *[]term, _, _ *[]corev1.WeightedPodAffinityTerm) { *a = terms })
}

func apart(terms ...term) func(*corev1.Pod) {
	return affine(func(_, a *[]term, _, _ *[]corev1.WeightedPodAffinityTerm) { *a = terms })
}

func preferring(weight int32, t term) func(*corev1.Pod) {
	return affine(func(_, _ *[]term, a, _ *[]corev1.WeightedPodAffinityTerm) {
		*a = append(*a, corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	})
}

func avoiding(weight int32, t term) func(*corev1.Pod) {
	return affine(func(_, _ *[]term, _, a *[]corev1.WeightedPodAffinityTerm) {
		*a = append(*a, corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	})
}

// affine sets terms of the Pod's affinity and anti-affinity, the required and the preferred ones.
func affine(set func(with, apart *[]term, prefers, avoids *[]corev1.WeightedPodAffinityTerm)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{},
				PodAntiAffinity: &corev1.PodAntiAffinity{}}
		}
		with, apart := p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity
		set(&with.RequiredDuringSchedulingIgnoredDuringExecution,
			&apart.RequiredDuringSchedulingIgnoredDuringExecution,
			&with.PreferredDuringSchedulingIgnoredDuringExecution,
			&apart.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// fiveNodes is nodes a and b in zone 1, x and y in zone 2 and z in none. Pods with the label app=web run on a and b,
// one with app=db on x, and one with app=cache and of namespace other on y.
func fiveNodes(t *testing.T, onX ...func(*corev1.Pod)) *rulestest.Cluster {
	in := func(value string) func(*corev1.Node) { return rulestest.Labelled(zone, value) }
	db := append([]func(*corev1.Pod){rulestest.Labelling("app", "db"), rulestest.OnNode("x")}, onX...)
	return rulestest.New(t, rulestest.Node("a", in("1")), rulestest.Node("b", in("1")), rulestest.Node("x", in("2")),
		rulestest.Node("y", in("2")), rulestest.Node("z")).Run(
		rulestest.Pod("w0", rulestest.Labelling("app", "web"), rulestest.OnNode("a")),
		rulestest.Pod("w1", rulestest.Labelling("app", "web"), rulestest.OnNode("b")),
		rulestest.Pod("db", db...),
		rulestest.Pod("c", rulestest.Labelling("app", "cache"), rulestest.OnNode("y"),
			func(p *corev1.Pod) { p.Namespace = "other" }))
}

func TestFilter(t *testing.T) {
	web, other := rulestest.Labelling("app", "web"), func(t *term) { t.Namespaces = []string{"other"} }
	all := func(why string, nodes ...string) map[string]string {
		out := map[string]string{}
		for _, n := range nodes {
			out[n] = why
		}
		return out
	}
	for name, test := range map[string]struct {
		onX  []func(*corev1.Pod) // what db, which runs on x, asks for
		pod  *corev1.Pod
		want map[string]string // why each node is refused
	}{
		"nothing asked for": {nil, rulestest.Pod("p"), map[string]string{}},
		"with db on a host": {nil, rulestest.Pod("p", with(to(host, "db"))), all(alone, "a", "b", "y", "z")},
		"with db in a zone": {nil, rulestest.Pod("p", with(to(zone, "db"))), all(alone, "a", "b", "z")},
		"with both, which no Pod is": {nil, rulestest.Pod("p", with(to(zone, "db"), to(zone, "web"))),
			all(alone, "a", "b", "x", "y", "z")},
		"with nobody there": {nil, rulestest.Pod("p", with(to(zone, "new"))), all(alone, "a", "b", "x", "y", "z")},
		"the first of its kind": {nil, rulestest.Pod("p", rulestest.Labelling("app", "new"), with(to(zone, "new"))),
			all(alone, "z")},
		"the second of its kind": {nil, rulestest.Pod("p", web, with(to(zone, "web"))), all(alone, "x", "y", "z")},
		"with one of another namespace": {nil, rulestest.Pod("p", with(to(host, "cache", other))),
			all(alone, "a", "b", "x", "z")},
		"with one that is of another namespace": {nil, rulestest.Pod("p", with(to(host, "cache"))),
			all(alone, "a", "b", "x", "y", "z")},
		"apart from web by host": {nil, rulestest.Pod("p", apart(to(host, "web"))), all(notApart, "a", "b")},
		"apart from db by zone":  {nil, rulestest.Pod("p", apart(to(zone, "db"))), all(notApart, "x", "y")},
		"apart from another namespace's": {nil, rulestest.Pod("p", apart(to(host, "cache", other))),
			all(notApart, "y")},
		"kept apart by host": {[]func(*corev1.Pod){apart(to(host, "web"))}, rulestest.Pod("p", web),
			all(repelled, "x")},
		"kept apart by zone": {[]func(*corev1.Pod){apart(to(zone, "web"))}, rulestest.Pod("p", web),
			all(repelled, "x", "y")},
		"db keeps others apart": {[]func(*corev1.Pod){apart(to(zone, "web"))}, rulestest.Pod("p"),
			map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, node := range []string{"a", "b", "x", "y", "z"} {
				for _, text := range fiveNodes(t, test.onX...).Refusals(byDefault,
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

// A Pod with a required term that cannot be read goes nowhere and says so.
func TestUnread(t *testing.T) {
	bad := to(zone, "web", func(t *term) {
		t.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}
	})
	want := `the Pod's affinity cannot be read: "Like" is not a valid label selector operator`
	for name, p := range map[string]*corev1.Pod{"affinity": rulestest.Pod("p", with(bad)),
		"anti-affinity": rulestest.Pod("p", apart(bad))} {
		got := fiveNodes(t).Refusals(byDefault, p, "a")
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: refused for %q, want %q", name, got, want)
		}
	}
	got := fiveNodes(t).Scores(byDefault, rulestest.Pod("p", preferring(1, bad)))
	if got != nil {
		t.Errorf("a preferred term that cannot be read scores %v", got)
	}
}

// The raw score is the sum of the weights of terms over the Pods in their domains.
func TestScore(t *testing.T) {
	web := rulestest.Labelling("app", "web")
	ignoring := interpodaffinity.Args{HardPodAffinityWeight: 1, IgnorePreferredTermsOfExistingPods: true}
	for name, test := range map[string]struct {
		args interpodaffinity.Args
		onX  []func(*corev1.Pod) // what db, which runs on x, asks for
		pod  *corev1.Pod
		want map[string]int64
	}{
		"nothing asked for": {interpodaffinity.Default(), nil, rulestest.Pod("p"), nil},
		"prefers web": {interpodaffinity.Default(), nil, rulestest.Pod("p", preferring(10, to(zone, "web"))),
			map[string]int64{"a": 20, "b": 20, "x": 0, "y": 0, "z": 0}},
		"avoids web on a host, prefers it in a zone": {interpodaffinity.Default(), nil, rulestest.Pod("p",
			avoiding(5, to(host, "web")), preferring(10, to(zone, "web"))),
			map[string]int64{"a": 15, "b": 15, "x": 0, "y": 0, "z": 0}},
		"is required by db": {interpodaffinity.Args{HardPodAffinityWeight: 3},
			[]func(*corev1.Pod){with(to(zone, "web"))}, rulestest.Pod("p", web),
			map[string]int64{"a": 0, "b": 0, "x": 3, "y": 3, "z": 0}},
		"is required by db, which counts nothing": {interpodaffinity.Args{},
			[]func(*corev1.Pod){with(to(zone, "web"))}, rulestest.Pod("p", web), nil},
		"is preferred by db": {interpodaffinity.Default(), []func(*corev1.Pod){preferring(7, to(host, "web"))},
			rulestest.Pod("p", web), map[string]int64{"a": 0, "b": 0, "x": 7, "y": 0, "z": 0}},
		"is avoided by db": {interpodaffinity.Default(), []func(*corev1.Pod){avoiding(7, to(zone, "web"))},
			rulestest.Pod("p", web), map[string]int64{"a": 0, "b": 0, "x": -7, "y": -7, "z": 0}},
		"is preferred by db, which is left out": {ignoring, []func(*corev1.Pod){preferring(7, to(host, "web"))},
			rulestest.Pod("p", web), nil},
		"is preferred by db and prefers something itself": {ignoring,
			[]func(*corev1.Pod){preferring(7, to(host, "web"))},
			rulestest.Pod("p", web, preferring(1, to(host, "db"))),
			map[string]int64{"a": 0, "b": 0, "x": 8, "y": 0, "z": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := fiveNodes(t, test.onX...).Scores(interpodaffinity.Rule(test.args), test.pod)
			if !maps.Equal(got, test.want) {
				t.Errorf("scores are %v, want %v", got, test.want)
			}
		})
	}
}
