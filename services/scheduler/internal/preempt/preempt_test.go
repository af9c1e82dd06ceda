package preempt_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/nodeaffinity"
	"keelson.dev/services/scheduler/internal/rules/noderesourcesfit"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// stage is nodes, the Pods on them, and who of these leaves already.
type stage struct {
	state   *columns.State
	budgets *preempt.Budgets
	units   *preempt.Units
	search  *preempt.Search
	leaves  map[types.UID]bool
	classes *class.Set
	profile rules.Profile
}

func newStage() *stage {
	s := &stage{state: columns.New(1), budgets: preempt.NewBudgets(), units: preempt.NewUnits(),
		leaves: map[types.UID]bool{}, classes: class.NewSet(),
		profile: rules.Profile{Rules: []rules.Rule{nodeaffinity.Rule(),
			noderesourcesfit.Rule(noderesourcesfit.Args{Weights: noderesourcesfit.DefaultWeights()})}}}
	s.search = s.another()
	return s
}

// another is a Search that has kept nothing.
func (s *stage) another() *preempt.Search {
	return preempt.New(s.state, s.budgets, s.units, func(p *corev1.Pod) bool { return s.leaves[p.UID] })
}

// node adds a node of 1 CPU.
func (s *stage) node(name string, change ...func(*corev1.Node)) {
	s.state.SetNode(rulestest.Node(name, append(change, rulestest.Allocatable(corev1.ResourceCPU, "1"))...))
}

// victim is a Pod that may give its room, described by "name cpu priority", such as "a 500m -1".
func victim(text string, change ...func(*corev1.Pod)) *corev1.Pod {
	var name, cpu string
	var priority int32
	if _, err := fmt.Sscan(text, &name, &cpu, &priority); err != nil {
		panic(err)
	}
	return rulestest.Pod(name, append(change, rulestest.Requests(corev1.ResourceCPU, cpu),
		func(p *corev1.Pod) { p.Spec.Priority = &priority })...)
}

func (s *stage) run(node string, pods ...*corev1.Pod) {
	for _, p := range pods {
		s.state.SetPod(p, node, s.state.Usage(p))
	}
}

// asks returns a Pod of priority 100 that wants a whole node.
func (s *stage) asks(change ...func(*corev1.Pod)) preempt.Preemptor { return s.asksFor("1", change...) }

func (s *stage) asksFor(cpu string, change ...func(*corev1.Pod)) preempt.Preemptor {
	p := rulestest.Pod("p", append(change, rulestest.Requests(corev1.ResourceCPU, cpu))...)
	return preempt.Preemptor{UID: p.UID, Priority: 100,
		Class: s.classes.Join(&s.profile, rules.PodOf(p, s.state.Usage(p)))}
}

// said is a plan as "node(victims) violations", or why there is none.
func (s *stage) said(plan *preempt.Plan, reasons []class.Reason) string {
	if plan == nil {
		var out []string
		for _, r := range reasons {
			out = append(out, fmt.Sprintf("%d %s", r.Nodes, r.Text))
		}
		return strings.Join(out, ", ")
	}
	text := fmt.Sprintf("%s(%s)", s.state.Name(plan.Slot), strings.Join(names(plan.Victims), " "))
	if plan.Violations > 0 {
		text += fmt.Sprintf(" %d", plan.Violations)
	}
	return text
}

func names(pods []*corev1.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

func (s *stage) find(p preempt.Preemptor) string { return s.said(s.search.Find(p)) }

func startedAt(second int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: metav1.Unix(second, 0).Time} }
}

func app(name string) func(*corev1.Pod) { return rulestest.Labelling("app", name) }

// budget allows so many disruptions of the Pods of an app.
func (s *stage) budget(of string, allowed int32, change ...func(*policyv1.PodDisruptionBudget)) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: of},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
			"app": of}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}
	for _, c := range change {
		c(b)
	}
	s.budgets.Set(b)
}

// The order of the nodes, each rule of it alone: node m, whose name comes first, against node n.
func TestOrderOfNodes(t *testing.T) {
	for name, test := range map[string]struct {
		m, n []*corev1.Pod
		want string
	}{
		"SCH-059, SCH-061: fewer violations, though its victim is more important": {
			[]*corev1.Pod{victim("a 1 0", app("x"))}, []*corev1.Pod{victim("b 1 99")}, "n(b)"},
		"SCH-061: one violation and not two": {
			[]*corev1.Pod{victim("a 500m 0", app("x")), victim("b 500m 0", app("x"))},
			[]*corev1.Pod{victim("c 500m 0", app("x")), victim("d 500m 9")}, "n(d c) 1"},
		"SCH-058, SCH-061: the lowest highest, though they are more": {
			[]*corev1.Pod{victim("a 1 10")}, []*corev1.Pod{victim("b 500m 9"), victim("c 500m 9")}, "n(b c)"},
		"SCH-061: the smaller sum of as many": {
			[]*corev1.Pod{victim("a 500m 10"), victim("b 500m 2")},
			[]*corev1.Pod{victim("c 500m 10"), victim("d 500m 1")}, "n(c d)"},
		"SCH-061: each counts for more than its priority": {
			[]*corev1.Pod{victim("a 500m -5"), victim("b 500m -5")}, []*corev1.Pod{victim("c 1 -5")}, "n(c)"},
		"SCH-061: the fewer of one sum": {
			[]*corev1.Pod{victim("a 500m 0"), victim(fmt.Sprint("b 500m ", math.MinInt32))},
			[]*corev1.Pod{victim("c 1 0")}, "n(c)"},
		"SCH-061: the later start": {
			[]*corev1.Pod{victim("a 1 0", startedAt(1))}, []*corev1.Pod{victim("b 1 0", startedAt(2))}, "n(b)"},
		"SCH-061: the earliest of the highest counts": {
			[]*corev1.Pod{victim("a 500m 5", startedAt(1)), victim("b 500m 5", startedAt(9))},
			[]*corev1.Pod{victim("c 500m 5", startedAt(2)), victim("d 500m 5", startedAt(3))}, "n(c d)"},
		"SCH-061: those below the highest do not": {
			[]*corev1.Pod{victim("a 500m 5", startedAt(2)), victim("b 500m 0", startedAt(9))},
			[]*corev1.Pod{victim("c 500m 5", startedAt(3)), victim("d 500m 0", startedAt(1))}, "n(c d)"},
		"SCH-061: the first": {
			[]*corev1.Pod{victim("a 1 0", startedAt(1))}, []*corev1.Pod{victim("b 1 0", startedAt(1))}, "m(a)"},
		"SCH-060: the one that helps": {
			[]*corev1.Pod{victim("a 500m 0"), victim("b 500m 100")}, []*corev1.Pod{victim("c 1 99")}, "n(c)"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reversed := range []bool{false, true} { // whichever came first
				s := newStage()
				s.budget("x", 0)
				s.node("m")
				s.node("n")
				if reversed {
					s.run("n", test.n...)
				}
				s.run("m", test.m...)
				if !reversed {
					s.run("n", test.n...)
				}
				p := s.asks()
				if got := s.find(p); got != test.want {
					t.Errorf("reversed %t: %s, want %s", reversed, got, test.want)
				}
				var plans []string
				for _, plan := range s.search.Cheapest(p, 9) {
					plans = append(plans, s.said(plan, nil))
				}
				if plans[0] != test.want {
					t.Errorf("the cheapest of %q is not %s", plans, test.want)
				}
			}
		})
	}
}

// Which of a node's Pods may stay: the Pod asks for half of it.
func TestReprieve(t *testing.T) {
	for name, test := range map[string]struct {
		on   []*corev1.Pod
		want string
	}{
		"SCH-039: only who must go":        {[]*corev1.Pod{victim("a 600m 0"), victim("b 400m 10")}, "n(a)"},
		"SCH-038: the most important stay": {[]*corev1.Pod{victim("a 500m 1"), victim("b 500m 2")}, "n(a)"},
		"SCH-038: of equals the one that runs longest": {[]*corev1.Pod{victim("a 500m 0", startedAt(2)),
			victim("b 500m 0", startedAt(1))}, "n(a)"},
		"SCH-038: before all those of a budget": {[]*corev1.Pod{victim("a 500m 0", app("x")), victim("b 500m 9")},
			"n(b)"},
		"SCH-038: the small ones after the large": {[]*corev1.Pod{victim("a 300m 9"), victim("b 500m 8"),
			victim("c 200m 7")}, "n(b)"},
		"SCH-036: never one of the same priority": {[]*corev1.Pod{victim("a 600m 100"), victim("b 400m 0")},
			"1 Insufficient cpu"},
		"SCH-052: one of a budget where nothing else helps": {[]*corev1.Pod{victim("a 600m 0", app("x")),
			victim("b 400m 0")}, "n(a) 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			s.budget("x", 0)
			s.node("n")
			s.run("n", test.on...)
			if got := s.find(s.asksFor("500m")); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// Why no node helps, and which are looked at. SCH-037, SCH-040, SCH-063
func TestNoNodeHelps(t *testing.T) {
	s := newStage()
	p := s.asks(rulestest.Selecting("disk", "ssd"))
	ssd := rulestest.Labelled("disk", "ssd")
	s.node("wrong")
	s.node("equal", ssd)
	s.run("wrong", victim("a 1 0"))
	s.run("equal", victim("b 1 100"))
	const first = "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling"
	if got := s.find(p); got != first {
		t.Errorf("%s, want %s", got, first)
	}
	s.node("half", ssd)
	s.run("half", victim("c 500m 100"), victim("d 500m 0"))
	if got := s.find(p); got != "1 Insufficient cpu, "+first {
		t.Errorf("%s, want also 1 Insufficient cpu", got)
	}
	var outlook []string
	s.search.Outlook(p, func(slot columns.Slot, why string) {
		outlook = append(outlook, s.state.Name(slot)+": "+why)
	})
	slices.Sort(outlook)
	if want := []string{"equal: No preemption victims found for incoming pod",
		"half: even without all Pods of lower priority: Insufficient cpu",
		"wrong: Preemption is not helpful for scheduling"}; !slices.Equal(outlook, want) {
		t.Errorf("the outlook is %q, want %q", outlook, want)
	}
	s.run("equal", victim("b 1 99"))
	if got := s.find(p); got != "equal(b)" {
		t.Errorf("%s, want equal(b)", got)
	}
}

// A Pod that leaves already counts as gone and costs nothing, whatever its budget; one that is nominated for the node
// gives way to a higher priority and to no other.
func TestLeavingAndNominated(t *testing.T) {
	s := newStage()
	s.budget("x", 0)
	s.node("m")
	s.node("n")
	s.run("m", victim("a 1 0"))
	s.run("n", victim("b 1 50", app("x")))
	p := s.asks()
	s.leaves["uid-b"] = true
	s.state.Note("uid-b", false)
	if got := s.find(p); got != "n()" {
		t.Errorf("%s, want n()", got)
	}
	keep := func(uid types.UID, priority int32) {
		s.state.Reserve("n", columns.Reservation{UID: uid, Usage: p.Class.Pod.Usage, Priority: priority})
	}
	keep("equal", 100)
	if got := s.find(p); got != "m(a)" {
		t.Errorf("beside one of the same priority %s, want m(a)", got)
	}
	s.state.Unreserve("equal", true)
	keep("lower", 99)
	plan, _ := s.search.Find(p)
	if got := s.said(plan, nil); got != "n()" || !slices.Equal(plan.Displaced, []types.UID{"lower"}) {
		t.Errorf("beside one of lower priority %s, which displaces %v", got, plan.Displaced)
	}
	s.state.Unreserve("lower", true)
	keep(p.UID, 100)
	if plan, _ = s.search.Find(p); s.said(plan, nil) != "n()" || len(plan.Displaced) > 0 {
		t.Errorf("nominated itself %s, which displaces %v", s.said(plan, nil), plan.Displaced)
	}
}
