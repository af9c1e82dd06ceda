package preempt_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/preempt"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// unit has Pods that run be evicted together or not at all.
func (s *stage) unit(priority int32, names ...string) *preempt.Unit {
	u := s.units.New(priority)
	for _, name := range names {
		u.Add(types.UID("uid-" + name))
	}
	return u
}

// What speaks against a node whose Pods go with others, and what they cost: node m, whose name comes first, against
// node n, which has one lone Pod; o has the others of the unit. P has priority 100.
func TestUnits(t *testing.T) {
	const none = "2 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling"
	for name, test := range map[string]struct {
		m, n, o []*corev1.Pod
		unit    int32
		members string
		want    string
	}{
		"all go": {[]*corev1.Pod{victim("a 1 0")}, []*corev1.Pod{victim("c 1 100")},
			[]*corev1.Pod{victim("b 1 99")}, 99, "a b", "m(b a)"},
		"SCH-036: not with an equal": {[]*corev1.Pod{victim("a 1 0")}, []*corev1.Pod{victim("c 1 100")},
			[]*corev1.Pod{victim("b 1 100")}, 99, "a b", none},
		"not of a group that is equal": {[]*corev1.Pod{victim("a 1 0")}, []*corev1.Pod{victim("c 1 100")},
			[]*corev1.Pod{victim("b 1 99")}, 100, "a b", none},
		"SCH-060: but another node's": {[]*corev1.Pod{victim("a 1 0")}, []*corev1.Pod{victim("c 1 99")},
			[]*corev1.Pod{victim("b 1 100")}, 0, "a b", "n(c)"},
		"SCH-058: the highest counts wherever it is": {[]*corev1.Pod{victim("a 1 0")}, []*corev1.Pod{victim("c 1 8")},
			[]*corev1.Pod{victim("b 1 9")}, 0, "a b", "n(c)"},
		"SCH-058: and no other": {[]*corev1.Pod{victim("a 1 0")}, []*corev1.Pod{victim("c 1 8")},
			[]*corev1.Pod{victim("b 1 9")}, 0, "a", "m(a)"},
		"SCH-061: so does the sum": {[]*corev1.Pod{victim("a 1 8")}, []*corev1.Pod{victim("c 1 8")},
			[]*corev1.Pod{victim("b 1 0")}, 0, "a b", "n(c)"},
		"SCH-059: so do budgets": {[]*corev1.Pod{victim("a 1 0")}, []*corev1.Pod{victim("c 1 50")},
			[]*corev1.Pod{victim("b 1 0", app("x"))}, 0, "a b", "n(c)"},
		"SCH-052: each Pod for one": {[]*corev1.Pod{victim("a 1 0", app("x"))}, []*corev1.Pod{victim("c 1 100")},
			[]*corev1.Pod{victim("b 1 0", app("x"))}, 0, "a b", "m(a b) 2"},
		"SCH-061: started long ago": {[]*corev1.Pod{victim("a 500m 0", startedAt(9))},
			[]*corev1.Pod{victim("c 1 0", startedAt(5)), victim("d 1 0", startedAt(5))},
			[]*corev1.Pod{victim("b 1 0", startedAt(1))}, 0, "a b", "n(c d)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			s.budget("x", 0)
			for _, node := range []string{"m", "n", "o"} {
				s.node(node)
			}
			s.node("o", rulestest.Labelled("far", "yes"))
			s.run("m", append(test.m, victim("stays 500m 100"))...)
			s.run("n", append(test.n, victim("stays-too 500m 100"))...)
			s.run("o", test.o...)
			s.unit(test.unit, strings.Fields(test.members)...)
			if got := s.find(s.asksFor("500m", near)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// near keeps the Pod from the nodes that are labelled far.
func near(p *corev1.Pod) {
	rulestest.Requiring(rulestest.Expression("far", corev1.NodeSelectorOpDoesNotExist))(p)
}

// Which of a node's Pods may stay if some go together: the Pod asks for half of it.
func TestReprieveOfUnits(t *testing.T) {
	for name, test := range map[string]struct {
		on       []*corev1.Pod
		far      []*corev1.Pod
		together string
		want     string
	}{
		"SCH-038: as its most important Pod, which is elsewhere": {
			[]*corev1.Pod{victim("a 500m 1"), victim("b 500m 2")}, []*corev1.Pod{victim("c 1 3")}, "a c", "n(b)"},
		"SCH-038: if it comes last it goes whole": {[]*corev1.Pod{victim("a 500m 1"), victim("b 500m 2")},
			[]*corev1.Pod{victim("c 1 1")}, "a c", "n(a c)"},
		"SCH-038: none of a node where not all can stay": {[]*corev1.Pod{victim("a 300m 9"), victim("b 300m 9"),
			victim("c 400m 1")}, nil, "a b", "n(a b)"},
		"SCH-038: before all one of a budget elsewhere": {[]*corev1.Pod{victim("a 500m 0"), victim("b 500m 9")},
			[]*corev1.Pod{victim("c 1 0", app("x"))}, "a c", "n(b)"},
		"one that leaves goes alone": {[]*corev1.Pod{victim("gone 500m 0"), victim("b 500m 9")},
			[]*corev1.Pod{victim("c 1 0")}, "gone c", "n()"},
		"those that stay go with none that leaves": {[]*corev1.Pod{victim("a 500m 0"), victim("b 500m 9")},
			[]*corev1.Pod{victim("gone 1 100")}, "a gone", "n(a)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			s.budget("x", 0)
			s.node("n")
			s.node("far", rulestest.Labelled("far", "yes"))
			s.run("n", test.on...)
			s.run("far", test.far...)
			s.leaves["uid-gone"] = true
			s.unit(0, strings.Fields(test.together)...)
			if got := s.find(s.asksFor("500m", near)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// The cost of a node is computed again when the Pods change that share a unit with one of its own, wherever these are.
func TestUnitsThatChange(t *testing.T) {
	s := newStage()
	for _, node := range []string{"m", "n"} {
		s.node(node)
	}
	s.node("far", rulestest.Labelled("far", "yes"))
	s.run("m", victim("a 1 0"))
	s.run("n", victim("c 1 50"))
	s.run("far", victim("b 500m 100"), victim("d 500m 60"))
	p := s.asks(near)
	var u *preempt.Unit
	for _, step := range []struct {
		happens func()
		want    string
	}{
		{func() {}, "m(a)"},
		{func() { u = s.unit(0, "a", "b") }, "n(c)"},
		{func() { s.leaves["uid-b"] = true; s.units.Touch("uid-b") }, "m(a)"},
		{func() { s.leaves["uid-b"] = false; s.units.Touch("uid-b") }, "n(c)"},
		{func() { u.Remove("uid-b") }, "m(a)"},
		{func() { u.Add("uid-d") }, "n(c)"},
		{func() { u.Dissolve() }, "m(a)"},
	} {
		step.happens()
		if got := s.find(p); got != step.want {
			t.Errorf("%s, want %s", got, step.want)
		}
		if got := s.said(s.another().Find(p)); got != step.want {
			t.Errorf("anew %s, want %s", got, step.want)
		}
	}
	s.state.TakeGains()
	u.Add("uid-a")
	u.Add("uid-b")
	s.units.Note(s.state)
	if gains := s.state.TakeGains(); len(gains) > 0 {
		t.Errorf("a unit that grows is a gain of %v", gains)
	}
	u.Remove("uid-b")
	s.units.Note(s.state)
	if gains := s.state.TakeGains(); !slices.Contains(gains, s.state.Slot("m")) {
		t.Errorf("a unit that lost a Pod is a gain of %v, not of m", gains)
	}
}

// An extender that chooses one of a unit chooses all of it, and none of a unit that stays.
func TestChosenUnits(t *testing.T) {
	s := newStage()
	s.node("n")
	s.node("far", rulestest.Labelled("far", "yes"))
	s.run("n", victim("a 500m 0"), victim("b 500m 0"))
	s.run("far", victim("c 500m 100"), victim("d 500m 1"))
	s.unit(0, "a", "c")
	s.unit(0, "b", "d")
	p := s.asksFor("500m", near)
	plan, err := s.search.Check(p, s.state.Slot("n"), []types.UID{"uid-b"})
	if got := s.said(plan, nil); got != "n(d b)" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	const want = "pod default/a goes only with its pod group, which must have a priority below 100 as a whole"
	if _, err = s.search.Check(p, s.state.Slot("n"), []types.UID{"uid-a", "uid-b"}); err == nil || err.Error() != want {
		t.Errorf("says %v, want %s", err, want)
	}
	if plans := s.search.Cheapest(p, 9); len(plans) != 1 || s.said(plans[0], nil) != "n(d b)" {
		t.Errorf("the cheapest are %v", plans)
	}
}

// Where Pods stay as their unit does, the outlook says so.
func TestOutlookOfUnits(t *testing.T) {
	s := newStage()
	s.node("m")
	s.node("n")
	s.run("m", victim("a 1 0"))
	s.run("n", victim("b 500m 100"), victim("c 500m 0"))
	s.unit(0, "a", "b", "c")
	var got []string
	s.search.Outlook(s.asks(), func(slot columns.Slot, why string) { got = append(got, s.state.Name(slot)+": "+why) })
	slices.Sort(got)
	const stays = " (some stay: their pod group is disrupted as a whole, and not all of it has a lower priority)"
	want := []string{"m: " + preempt.NoVictims + stays, "n: " + preempt.NoVictims + stays}
	if !slices.Equal(got, want) {
		t.Errorf("the outlook is %q, want %q", got, want)
	}
	s.run("n", victim("d 100m 0"))
	got = nil
	s.search.Outlook(s.asks(), func(slot columns.Slot, why string) { got = append(got, s.state.Name(slot)+": "+why) })
	if want := "n: even without all Pods of lower priority: Insufficient cpu" + stays; !slices.Contains(got, want) {
		t.Errorf("the outlook is %q, want %q", got, want)
	}
}
