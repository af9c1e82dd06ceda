package preempt_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How many disruptions violate a budget: two Pods of app x must go. SCH-052, SCH-053
func TestViolations(t *testing.T) {
	known := func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptedPods = map[string]metav1.Time{"a": {}} }
	all := func(b *policyv1.PodDisruptionBudget) { b.Name, b.Spec.Selector = "all", &metav1.LabelSelector{} }
	for name, test := range map[string]struct {
		given func(*stage)
		want  string
	}{
		"no budget":                     {func(*stage) {}, "n(a b)"},
		"none allowed":                  {func(s *stage) { s.budget("x", 0) }, "n(a b) 2"},
		"one allowed":                   {func(s *stage) { s.budget("x", 1) }, "n(a b) 1"},
		"both allowed":                  {func(s *stage) { s.budget("x", 2) }, "n(a b)"},
		"another app's":                 {func(s *stage) { s.budget("y", 0) }, "n(a b)"},
		"another namespace's":           {func(s *stage) { s.budget("x", 0, elsewhere) }, "n(a b)"},
		"one that knows of the first":   {func(s *stage) { s.budget("x", 0, known) }, "n(a b) 1"},
		"two, of which one allows it":   {func(s *stage) { s.budget("x", 2); s.budget("x", 0, all) }, "n(a b) 2"},
		"a selector that means nothing": {func(s *stage) { s.budget("x", 0, unread) }, "n(a b)"},
		"no selector":                   {func(s *stage) { s.budget("x", 0, without) }, "n(a b)"},
		"a change":                      {func(s *stage) { s.budget("x", 0); s.budget("x", 1) }, "n(a b) 1"},
		"a change of whom it protects":  {func(s *stage) { s.budget("x", 0); s.budget("x", 0, without) }, "n(a b)"},
		"one that is gone": {func(s *stage) {
			s.budget("x", 0)
			s.budgets.Remove(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
				Name: "x"}})
		}, "n(a b)"},
		"the same name elsewhere is gone": {func(s *stage) {
			s.budget("x", 0)
			s.budgets.Remove(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "other",
				Name: "x"}})
		}, "n(a b) 2"},
		"one on its way elsewhere": {func(s *stage) {
			s.budget("x", 2)
			s.budgets.Disrupt(victim("c 1 0", app("x")))
		}, "n(a b) 1"},
		"one on its way that the API shows": {func(s *stage) {
			s.budget("x", 2)
			s.budgets.Disrupt(victim("c 1 0", app("x")))
			s.budgets.Seen("uid-c")
		}, "n(a b)"},
		"one on its way of another app": {func(s *stage) {
			s.budget("x", 2)
			s.budgets.Disrupt(victim("c 1 0", app("y")))
		}, "n(a b)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			s.node("n")
			s.run("n", victim("a 500m 1", app("x")), victim("b 500m 0", app("x")))
			p := s.asks()
			s.find(p) // what is kept must follow
			test.given(s)
			if got := s.find(p); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func elsewhere(b *policyv1.PodDisruptionBudget) { b.Namespace = "other" }

func without(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil }

func unread(b *policyv1.PodDisruptionBudget) {
	b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
		Operator: "Like"}}}
}

// Each node is counted by itself: a budget that allows one disruption is violated on neither. SCH-053
func TestEachNodeIsCountedByItself(t *testing.T) {
	s := newStage()
	s.budget("x", 1)
	s.node("m")
	s.node("n")
	s.run("m", victim("a 1 0", app("x")))
	s.run("n", victim("b 1 0", app("x")))
	for _, plan := range s.search.Cheapest(s.asks(), 9) {
		if plan.Violations > 0 {
			t.Errorf("%s violates a budget", s.said(plan, nil))
		}
	}
}

// What extenders chose is looked at once more.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		victims []types.UID
		want    string
	}{
		"as proposed":      {[]types.UID{"uid-c", "uid-b"}, "n(b c) 1"},
		"more than needed": {[]types.UID{"uid-b", "uid-c", "uid-d"}, "n(b d c) 1"},
		"too few":          {[]types.UID{"uid-b"}, ""},
		"one that is gone": {[]types.UID{"uid-b", "uid-c", "uid-z"}, "n(b c) 1"},
		"one that leaves":  {[]types.UID{"uid-b", "uid-c", "uid-e"}, "n(b c) 1"},
		"one that is no victim": {[]types.UID{"uid-a", "uid-b", "uid-c"},
			"pod default/a has priority 100, which must be below 100"},
		"none":                   {nil, ""},
		"on a node that is gone": {[]types.UID{"uid-b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			s.budget("x", 0)
			s.node("n")
			s.run("n", victim("a 0 100"), victim("b 400m 9"), victim("c 400m 0", app("x")), victim("d 100m 1"),
				victim("e 100m 0"))
			s.leaves["uid-e"] = true
			slot := s.state.Slot("n")
			if name == "on a node that is gone" {
				s.state.RemoveNode("n")
			}
			plan, err := s.search.Check(s.asksFor("900m"), slot, test.victims)
			got := ""
			if err != nil {
				got = err.Error()
			} else if plan != nil {
				got = s.said(plan, nil)
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// What is kept of one try is what a Search finds that has kept nothing, through random changes.
func TestKeptCostsFollow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := newStage()
	for i := range 4 {
		s.node(fmt.Sprint("n", i))
	}
	p := s.asks()
	for step := range 2000 {
		name := fmt.Sprint("v", random.IntN(10))
		switch random.IntN(6) {
		case 0, 1:
			s.state.RemovePod(types.UID("uid-" + name))
			delete(s.leaves, types.UID("uid-"+name))
		case 2, 3:
			s.run(fmt.Sprint("n", random.IntN(4)), victim(fmt.Sprintf("%s %dm %d", name, 250*(1+random.IntN(4)),
				random.IntN(4)*50), app(fmt.Sprint("x", random.IntN(2))), startedAt(int64(random.IntN(3)))))
		case 4:
			s.budget(fmt.Sprint("x", random.IntN(2)), int32(random.IntN(3)))
		default:
			s.leaves[types.UID("uid-"+name)] = random.IntN(2) == 0
			s.state.Note(types.UID("uid-"+name), false)
		}
		if got, want := s.find(p), s.said(s.another().Find(p)); got != want {
			t.Fatalf("step %d: %s, want %s", step, got, want)
		}
	}
}
