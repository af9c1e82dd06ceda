package class

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// setFixture is a Set whose classes are Pods by hostname; they are confined to the node n0 where that begins with "-".
type setFixture struct {
	*Set
	state   *columns.State
	profile rules.Profile
}

func newSetFixture(nodes int) *setFixture {
	f := &setFixture{Set: NewSet(), state: columns.New(1), profile: rules.Profile{Rules: []rules.Rule{{
		Key: func(b []byte, p rules.Pod) []byte { return append(b, p.Spec.Hostname...) },
		Filter: func(p rules.Pod) *rules.Filter {
			filter := &rules.Filter{Texts: []string{"other node(s)"},
				Judge: rules.ByName(func(columns.View) rules.Reasons { return 0 })}
			if p.Spec.Hostname[0] == '-' {
				filter.Pins = &rules.Pins{Names: []string{"n0", "n0", "none"}, Hostnames: []string{"n0"}}
			}
			return filter
		},
	}}}}
	for i := range nodes {
		f.state.SetNode(rulestest.Node(fmt.Sprintf("n%d", i)))
	}
	return f
}

func (f *setFixture) join(name string) *Class {
	p := named(name)
	return f.Join(&f.profile, rules.PodOf(p, f.state.Usage(p)))
}

func named(name string) *corev1.Pod {
	return rulestest.Pod("p", func(p *corev1.Pod) { p.Spec.Hostname = name })
}

func (f *setFixture) has(name string) bool {
	p := named(name)
	return f.byKey[f.profile.Key(rules.PodOf(p, f.state.Usage(p)))] != nil
}

// The Set keeps the 1,024 classes without Pods that were used last.
func TestIdleClassesAreBounded(t *testing.T) {
	f := newSetFixture(1)
	busy := f.join("busy") // asked for the longest time ago, but it has a Pod
	f.Touch(busy, f.state)
	for i := range 1024 {
		c := f.join(fmt.Sprint(i))
		f.Touch(c, f.state)
		f.Leave(c)
	}
	if f.Len() != 1025 {
		t.Errorf("%d classes, want 1025", f.Len())
	}
	again := f.join("0") // is not idle while it has a Pod, and asked last
	f.Touch(again, f.state)
	extra := f.join("extra")
	f.Touch(extra, f.state)
	f.Leave(extra)
	if f.Len() != 1026 || !f.has("1") {
		t.Errorf("%d classes, want 1026: 1024 of them idle", f.Len())
	}
	f.Leave(again)
	if f.Len() != 1025 || f.has("1") || !f.has("0") || !f.has("2") || !f.has("busy") {
		t.Errorf("%d classes, want 1025: the idle one that was not asked for the longest time is gone", f.Len())
	}
}

// A class lasts until as many Pods have left as joined, and IDs are not used again.
func TestClassesCountTheirPods(t *testing.T) {
	f := newSetFixture(1)
	first := f.join("-a")
	if f.join("-a") != first {
		t.Fatal("two classes for alike Pods")
	}
	f.Leave(first)
	if !f.has("-a") {
		t.Error("the class went with the first of two Pods")
	}
	f.Leave(first)
	if f.has("-a") || f.Len() != 0 || f.idle != 0 {
		t.Errorf("a pinned class is kept without Pods: %d classes, %d idle", f.Len(), f.idle)
	}
	second := f.join("-a")
	if second.ID == first.ID || second.ID == 0 || first.ID == 0 {
		t.Errorf("IDs are %d and %d", first.ID, second.ID)
	}
}

// The indexes together are bounded: those of the classes that were not asked for the longest time go.
func TestEntriesAreBounded(t *testing.T) {
	f := newSetFixture(10)
	f.room = 25
	var classes []*Class
	for i := range 4 {
		classes = append(classes, f.join(fmt.Sprint(i)))
	}
	ask := func(c *Class) {
		f.Touch(c, f.state)
		if n := c.Feasible(f.state); n != 10 {
			t.Fatalf("%d nodes are feasible", n)
		}
	}
	kept := func() []bool {
		var out []bool
		for _, c := range classes {
			out = append(out, c.index != nil)
		}
		return out
	}
	ask(classes[0])
	ask(classes[1])
	ask(classes[0])
	if f.entries != 20 || !slices.Equal(kept(), []bool{true, true, false, false}) {
		t.Errorf("%d entries, kept %v", f.entries, kept())
	}
	ask(classes[2])
	if f.entries != 30 {
		t.Errorf("%d entries, want 30 until the next look", f.entries)
	}
	ask(classes[3])
	if f.entries != 30 || !slices.Equal(kept(), []bool{true, false, true, true}) {
		t.Errorf("%d entries, kept %v, want all but the second", f.entries, kept())
	}
	f.room = 1 // the one that is asked stays
	f.Touch(classes[2], f.state)
	if f.entries != 10 || !slices.Equal(kept(), []bool{false, false, true, false}) {
		t.Errorf("%d entries, kept %v, want the third", f.entries, kept())
	}
	f.state.SetNode(rulestest.Node("one-more"))
	if n := classes[2].Feasible(f.state); n != 11 || f.entries != 11 {
		t.Errorf("%d nodes are feasible, %d entries", n, f.entries)
	}
	f.Leave(classes[2])
	f.forget(classes[2])
	if f.entries != 0 {
		t.Errorf("%d entries after the last class is gone", f.entries)
	}
}

// A pinned class looks at the nodes that it names, each once, and counts all others as refused.
func TestPinned(t *testing.T) {
	f := newSetFixture(5)
	c := f.join("-p")
	if choice, ok := c.Best(f.state); !ok || f.state.Name(choice.Slot) != "n0" || choice.Feasible != 1 {
		t.Errorf("best is %+v, %v", choice, ok)
	}
	if n := c.Feasible(f.state); n != 1 {
		t.Errorf("%d nodes are feasible, want 1", n)
	}
	if got := c.Refusals(f.state); !slices.Equal(got, []Reason{{Text: "other node(s)", Nodes: 4}}) {
		t.Errorf("refusals are %v", got)
	}
	if c.index != nil || f.entries != 0 {
		t.Error("it judged all nodes")
	}
	f.state.SetPod(rulestest.Identified("x"), "n0", f.state.Usage(rulestest.Pod("x")))
	f.state.RemoveNode("n0")
	if _, ok := c.Best(f.state); ok || c.Feasible(f.state) != 0 {
		t.Error("a node that is gone is feasible")
	}
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		f.state.RemoveNode(name)
	}
	if got := c.Refusals(f.state); len(got) != 0 {
		t.Errorf("refusals are %v with no node", got)
	}
}

// The cache of verdicts by shape is bounded by the shapes that there are.
func TestVerdictsOfShapesThatAreGoneAreForgotten(t *testing.T) {
	s := columns.New(1)
	profile := rules.Profile{Rules: []rules.Rule{{Filter: func(rules.Pod) *rules.Filter {
		return &rules.Filter{Judge: rules.ByShape(func(columns.View) rules.Reasons { return 0 })}
	}}}}
	p := rulestest.Pod("p")
	c := NewSet().Join(&profile, rules.PodOf(p, s.Usage(p)))
	most := 0
	for i := range 100 {
		s.SetNode(rulestest.Node("n", rulestest.Labelled("i", fmt.Sprint(i))))
		c.Feasible(s)
		most = max(most, len(c.judge.verdicts))
	}
	if most != 2*1+16+1 {
		t.Errorf("up to %d verdicts were kept of one node", most)
	}
}

// Catching up judges what changed, or all nodes once where more changed than there are.
func TestCatchUp(t *testing.T) {
	judged := 0
	s := columns.New(1)
	profile := rules.Profile{Rules: []rules.Rule{{Filter: func(rules.Pod) *rules.Filter {
		return &rules.Filter{Judge: rules.ByRoom(func(columns.Node) rules.Reasons { judged++; return 0 })}
	}}}}
	for i := range 10 {
		s.SetNode(rulestest.Node(fmt.Sprintf("n%d", i)))
	}
	p := rulestest.Pod("p")
	u := s.Usage(p)
	c := NewSet().Join(&profile, rules.PodOf(p, u))
	for _, test := range []struct {
		changes, want int
	}{{0, 10}, {0, 0}, {2, 2}, {10, 10}, {12, 10}, {5000, 10}, {4, 4}} {
		for range test.changes / 2 {
			s.SetPod(rulestest.Identified("x"), "n3", u)
			s.RemovePod("x")
		}
		judged = 0
		if n := c.Feasible(s); n != 10 || judged != test.want {
			t.Errorf("after %d changes %d nodes were judged, want %d; %d are feasible", test.changes, judged, test.want,
				n)
		}
	}
}

// The words of a rank: the score counts most, then few Pods, then the tie-break.
func TestRank(t *testing.T) {
	ordered := []uint64{
		rank(0, 70_000, 0), rank(0, 65_534, 1<<31), rank(0, 2, 0), rank(0, 1, 0), rank(0, 1, 1<<8), rank(0, 1, 1<<31),
		rank(0, 0, 0), rank(1, 70_000, 0), rank(1, 3, 5<<8), rank(700, 0, 1<<31),
	}
	if !slices.IsSorted(ordered) || len(slices.Compact(slices.Clone(ordered))) != len(ordered) {
		t.Errorf("ranks %x are not in order", ordered)
	}
	if rank(0, 70_000, 0) != rank(0, 65_535, 0) || rank(0, 70_000, 0)>>40 != 0 {
		t.Error("many Pods spill into the score")
	}
	for _, score := range []int64{0, 1, 700, 1 << 20} {
		if got := rankScore(rank(score, 3, 1<<31)); got != score {
			t.Errorf("score %d is packed as %d", score, got)
		}
	}
	rest := func(rank uint64) item { return newItem(rank, 0).rest() }
	if rest(rank(5, 3, 7<<8)) != rest(rank(900, 3, 7<<8)) || rest(rank(5, 3, 0)) == rest(rank(5, 4, 0)) {
		t.Error("what decides between equal scores is not what it should be")
	}
}

// Whatever is pushed, changed and removed, the front is the greatest and every node knows its place.
func TestHeap(t *testing.T) {
	const n = 60
	nodes := make([]node, n)
	h := heap{}
	check := func(at string) {
		t.Helper()
		for i, it := range h {
			if nodes[it.slot].at != int32(i) {
				t.Fatalf("%s: the node at %d believes to be at %d", at, i, nodes[it.slot].at)
			}
			if parent := (i - 1) / 4; i > 0 && h[parent].rank() < it.rank() {
				t.Fatalf("%s: %d is above %d", at, h[parent].rank(), it.rank())
			}
		}
	}
	for i := range n {
		h = append(h, newItem(uint64(i*37%61), columns.Slot(i)))
	}
	h.order(nodes)
	check("ordered")
	for i := range 300 {
		slot := columns.Slot(i * 17 % n)
		h.change(nodes, nodes[slot].at, uint64(i*29%97))
		check("changed")
	}
	for i := range n / 2 {
		h.remove(nodes, nodes[i*2].at)
		check("removed")
	}
	for i := range n / 2 {
		h.push(nodes, newItem(uint64(i*53%101), columns.Slot(i*2)))
		check("pushed")
	}
	last := h[0].rank()
	for len(h) > 0 {
		if h[0].rank() > last {
			t.Fatalf("%d comes after %d", h[0].rank(), last)
		}
		last = h[0].rank()
		h.remove(nodes, 0)
		check("popped")
	}
	h.order(nodes)
}

// Nodes of one rank, of which large clusters have some, are taken in one order, however they came.
func TestTies(t *testing.T) {
	const n = 40
	var judge judge
	for seed := range uint64(20) {
		order := rand.New(rand.NewPCG(seed, 0)).Perm(n)
		h, nodes := heap{}, make([]node, n)
		var among []candidate
		for _, slot := range order {
			it := newItem(rank(7, 3, 0), columns.Slot(slot))
			h.push(nodes, it)
			among = append(among, candidate{item: it, nodes: 1})
		}
		if choice, ok := judge.pick(nil, among); !ok || choice.Slot != 0 {
			t.Errorf("of nodes in the order %v, %d is picked, want the first", order, choice.Slot)
		}
		for slot := range columns.Slot(n) {
			if h[0].slot != slot {
				t.Fatalf("pushed in the order %v, %d comes where %d is due", order, h[0].slot, slot)
			}
			h.remove(nodes, 0)
		}
	}
}
