package cycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/rulestest"
)

// Two nodes of two zones, a Pod web on the first, and what terms do to a Pod that comes.
func TestInterPodAffinity(t *testing.T) {
	const (
		alone    = "node(s) didn't match pod affinity rules"
		notApart = "node(s) didn't match pod anti-affinity rules"
		repelled = "node(s) didn't satisfy existing pods anti-affinity rules"
	)
	is := func(app string) func(*corev1.Pod) { return rulestest.Labelling("app", app) }
	all := func(text string) string { return "0/2 nodes are available: 2 " + text + "." }
	everywhere := func(p *corev1.Pod) {
		p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector =
			&metav1.LabelSelector{}
	}
	elsewhere := func(p *corev1.Pod) { p.Namespace = "other" }
	unreadable := func(p *corev1.Pod) {
		p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector =
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}}
	}
	for name, test := range map[string]struct {
		there, comes podChanges
		node, reason string
	}{
		"with the other":    {nil, podChanges{rulestest.Affinity(zone, "app", "web")}, "a", ""},
		"with nobody there": {nil, podChanges{rulestest.Affinity(zone, "app", "db")}, "", all(alone)},
		"the first of its own": {nil, podChanges{is("db"), rulestest.Affinity(zone, "app", "db")},
			"a b", ""},
		"the first, of a key that is not there": {nil,
			podChanges{is("db"), rulestest.Affinity("rack", "app", "db")}, "", all(alone)},
		"the second of its own": {nil, podChanges{is("web"), rulestest.Affinity(zone, "app", "web")},
			"a", ""},
		"with one of all terms": {nil, podChanges{is("db"), rulestest.Affinity(zone, "app", "web"),
			rulestest.Affinity(corev1.LabelHostname, "app", "db")}, "", all(alone)},
		"with one of another namespace": {nil, podChanges{elsewhere, rulestest.Affinity(zone, "app", "web")},
			"", all(alone)},
		"with one of any namespace": {nil, podChanges{elsewhere, rulestest.Affinity(zone, "app", "web"),
			everywhere}, "a", ""},
		"apart": {nil, podChanges{rulestest.AntiAffinity(zone, "app", "web")}, "b", ""},
		"apart, of a key that is not there": {nil,
			podChanges{rulestest.AntiAffinity("rack", "app", "web")}, "a b", ""},
		"the other keeps apart": {podChanges{rulestest.AntiAffinity(zone, "app", "db")}, podChanges{is("db")},
			"b", ""},
		"nowhere is apart": {nil, podChanges{rulestest.AntiAffinity(corev1.LabelOSStable, "app", "web"),
			func(p *corev1.Pod) {}}, "", all(notApart)},
		"nowhere is apart from the other": {podChanges{rulestest.AntiAffinity(corev1.LabelOSStable, "app", "db")},
			podChanges{is("db")}, "", all(repelled)},
		"a term that cannot be read": {nil, podChanges{rulestest.AntiAffinity(zone, "app", "web"), unreadable}, "",
			"0/2 nodes are available: the Pod's affinity cannot be read: \"Like\" is not a valid label selector " +
				"operator."},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for _, n := range []string{"a", "b"} {
				f.SetNode(rulestest.Node(n, rulestest.Labelled(zone, n)))
			}
			there := append(test.there, is("web"), onNode("a"))
			f.add(pod("there", "0", there...), pod("p", "0", test.comes...))
			v, ok := f.Next(f.now)
			if !ok {
				t.Fatal("not tried")
			}
			placed := v.Node == test.node || test.node == "a b" && v.Feasible == 2
			if !placed || v.Node == "" && v.Message() != test.reason {
				t.Errorf("placed on %q, or refused: %s", v.Node, v.Message())
			}
		})
	}
}

// The current labels of a namespace decide whether its Pods count, and a Pod that waits for them is tried again.
func TestNamespaceSelector(t *testing.T) {
	f := newFixture(t)
	f.SetNode(rulestest.Node("a", rulestest.Labelled(zone, "a")))
	with := pod("p", "0", rulestest.Affinity(zone, "app", "web"), func(p *corev1.Pod) {
		p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector =
			&metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
	})
	f.add(pod("there", "0", rulestest.Labelling("app", "web"), onNode("a"),
		func(p *corev1.Pod) { p.Namespace = "other" }), with)
	f.SetNamespace("other", labels.Set{"team": "y"})
	if v, ok := f.Next(f.now); !ok || v.Node != "" {
		t.Fatalf("placed on %q", v.Node)
	}
	f.SetNamespace("other", labels.Set{"team": "x"})
	f.now = f.now.Add(time.Minute)
	if v, ok := f.Next(f.now); !ok || v.Node != "a" {
		t.Fatalf("not placed: %s", v.Message())
	}
	f.SetNamespace("other", nil)
	again := with.DeepCopy()
	again.Name, again.UID = "q", "q"
	f.add(again)
	if v, ok := f.Next(f.now); !ok || v.Node != "" {
		t.Errorf("placed on %q by a namespace that is gone", v.Node)
	}
}
