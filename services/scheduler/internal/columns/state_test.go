package columns

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func node(name string, allocatable corev1.ResourceList) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a", corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: allocatable},
	}
}

// identified returns a Pod that is nothing but its UID.
func identified(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}
}

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

func usage(s *State, amount string) *Usage {
	return s.Usage(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container(amount, "")}}})
}

// A Pod bound to a node that is not known yet counts as soon as the node is, and goes on counting while it is away.
func TestPodsOutlastTheirNode(t *testing.T) {
	s := New(0)
	s.SetPod(identified("p"), "n", usage(s, "1"))
	if s.Nodes() != 0 || s.Known(s.Slot("n")) {
		t.Fatal("a Pod alone makes no node")
	}
	s.SetNode(node("n", cpu("4")))
	if free := s.Node(s.Slot("n")).Free(CPU); free != 3000 {
		t.Errorf("%d are free, want 3000", free)
	}
	s.RemoveNode("n")
	if s.Nodes() != 0 {
		t.Errorf("%d nodes after removal", s.Nodes())
	}
	s.SetNode(node("n", cpu("2")))
	if free := s.Node(s.Slot("n")).Free(CPU); free != 1000 {
		t.Errorf("%d are free after the return, want 1000", free)
	}
	s.RemoveNode("n")
	s.RemovePod("p")
	if s.Slot("n") != None {
		t.Error("the slot is not free")
	}
	before := s.Slots()
	s.SetNode(node("m", cpu("1")))
	if s.Slots() != before || s.Node(s.Slot("m")).Free(CPU) != 1000 || s.Node(s.Slot("m")).Free(Pods) != 0 {
		t.Error("the slot was not used again afresh")
	}
}

// Setting a Pod again, as after a binding that was assumed, counts it once; setting it elsewhere moves it.
func TestPodCountsOnce(t *testing.T) {
	s := New(0)
	s.SetNode(node("a", cpu("4")))
	s.SetNode(node("b", cpu("4")))
	u := usage(s, "1")
	s.SetPod(identified("p"), "a", u)
	version := s.Version()
	s.SetPod(identified("p"), "a", u)
	if s.Version() != version || s.Node(s.Slot("a")).Free(CPU) != 3000 {
		t.Error("a repeated SetPod changed something")
	}
	s.SetPod(identified("p"), "b", u)
	if at, _ := s.PodNode("p"); at != "b" || s.Node(s.Slot("a")).Free(CPU) != 4000 ||
		s.Node(s.Slot("b")).Free(CPU) != 3000 {
		t.Error("the Pod was not moved")
	}
	s.SetPod(identified("p"), "b", usage(s, "2"))
	if free := s.Node(s.Slot("b")).Free(CPU); free != 2000 {
		t.Errorf("%d are free after a resize, want 2000", free)
	}
}

func TestGains(t *testing.T) {
	unschedulable := node("n", cpu("4"))
	unschedulable.Spec.Unschedulable = true
	tainted := node("n", cpu("4"))
	tainted.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	heartbeat := node("n", cpu("4"))
	heartbeat.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for name, test := range map[string]struct {
		event   func(*State)
		changed bool
		gained  bool
	}{
		"node comes":            {func(s *State) { s.SetNode(node("m", cpu("1"))) }, true, true},
		"node goes":             {func(s *State) { s.RemoveNode("n") }, true, false},
		"node grows":            {func(s *State) { s.SetNode(node("n", cpu("8"))) }, true, true},
		"node shrinks":          {func(s *State) { s.SetNode(node("n", cpu("2"))) }, true, false},
		"node is cordoned":      {func(s *State) { s.SetNode(unschedulable) }, true, true},
		"node is tainted":       {func(s *State) { s.SetNode(tainted) }, true, true},
		"node says it is alive": {func(s *State) { s.SetNode(heartbeat) }, false, false},
		"Pod comes":             {func(s *State) { s.SetPod(identified("q"), "n", usage(s, "1")) }, true, false},
		"Pod goes":              {func(s *State) { s.RemovePod("p") }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(0)
			s.SetNode(node("n", cpu("4")))
			s.SetPod(identified("p"), "n", usage(s, "1"))
			s.TakeGains()
			version := s.Version()
			test.event(s)
			if changed := s.Version() != version; changed != test.changed {
				t.Errorf("changed is %v", changed)
			}
			if gained := len(s.TakeGains()) > 0; gained != test.gained {
				t.Errorf("gained is %v", gained)
			}
			if len(s.TakeGains()) > 0 {
				t.Error("a gain was told twice")
			}
		})
	}
}

func TestJournal(t *testing.T) {
	s := New(0)
	slot := s.SetNode(node("n", cpu("4")))
	from := s.Version()
	collect := func() (slots []Slot, ok bool) {
		ok = s.ChangedSince(from, func(at Slot) { slots = append(slots, at) })
		return slots, ok
	}
	other := s.SetNode(node("m", cpu("4")))
	s.SetPod(identified("p"), "n", usage(s, "1"))
	if got, ok := collect(); !ok || !slices.Equal(got, []Slot{other, slot}) {
		t.Errorf("changed are %v, %v", got, ok)
	}
	u := usage(s, "1")
	for range journalMin {
		s.SetPod(identified("q"), "n", u)
		s.RemovePod("q")
	}
	if got, ok := collect(); ok || len(got) > 0 {
		t.Error("the journal claims to reach back further than it does")
	}
}

// The journal reaches back 1024 changes, or as many as there are nodes.
func TestJournalReach(t *testing.T) {
	s := New(0)
	s.SetNode(node("n", cpu("4")))
	u := usage(s, "1")
	change := func(times int) {
		for range times / 2 {
			s.SetPod(identified("q"), "n", u)
			s.RemovePod("q")
		}
	}
	reaches := func(version uint64) bool {
		seen := 0
		ok := s.ChangedSince(version, func(Slot) { seen++ })
		if want := s.Version() - version; ok && uint64(seen) != want {
			t.Errorf("%d changes were told of %d", seen, want)
		}
		return ok
	}
	from := s.Version()
	if !reaches(from) || !reaches(0) {
		t.Error("a new journal does not reach back")
	}
	change(1024)
	if !reaches(from) || reaches(from-1) {
		t.Error("the journal does not reach back exactly 1024 changes")
	}
	change(4096)
	if from = s.Version() - 1024; !reaches(from) || reaches(from-1) {
		t.Error("the journal does not reach back exactly 1024 changes after it went round")
	}
	for i := range 1023 {
		s.SetNode(node(fmt.Sprint("m", i), nil))
	}
	if from = s.Version() - 1024; !reaches(from) {
		t.Error("the journal has lost entries though it need not grow")
	}
	s.SetNode(node("one-more", nil))
	if now := s.Version(); reaches(now-2) || !reaches(now-1) {
		t.Error("the journal has not grown with the nodes, or tells what it forgot")
	}
	from = s.Version()
	change(2048)
	if !reaches(from) || reaches(from-1) {
		t.Error("the journal of 1025 nodes does not reach back exactly 2048 changes")
	}
}

// What makes a node another one of its shape's kind, and what does not.
func TestDescribes(t *testing.T) {
	taint := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	tainted := func(change func(*corev1.Taint)) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint}
			change(&n.Spec.Taints[0])
		}
	}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		same   bool
	}{
		"nothing":             {func(*corev1.Node) {}, true},
		"the hostname":        {func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "other" }, true},
		"no hostname":         {func(n *corev1.Node) { delete(n.Labels, corev1.LabelHostname) }, true},
		"the name":            {func(n *corev1.Node) { n.Name = "other" }, true},
		"when it was tainted": {tainted(func(t *corev1.Taint) { t.TimeAdded = &metav1.Time{} }), true},
		"a label's value":     {func(n *corev1.Node) { n.Labels["zone"] = "z" }, false},
		"a label's key":       {func(n *corev1.Node) { delete(n.Labels, "zone"); n.Labels["zona"] = "a" }, false},
		"an empty label":      {func(n *corev1.Node) { delete(n.Labels, "empty"); n.Labels["void"] = "" }, false},
		"one label more":      {func(n *corev1.Node) { n.Labels["more"] = "a" }, false},
		"one label less":      {func(n *corev1.Node) { delete(n.Labels, "zone") }, false},
		"cordoned":            {func(n *corev1.Node) { n.Spec.Unschedulable = true }, false},
		"no taint":            {func(n *corev1.Node) { n.Spec.Taints = nil }, false},
		"a taint's key":       {tainted(func(t *corev1.Taint) { t.Key = "l" }), false},
		"a taint's value":     {tainted(func(t *corev1.Taint) { t.Value = "w" }), false},
		"a taint's effect":    {tainted(func(t *corev1.Taint) { t.Effect = corev1.TaintEffectNoExecute }), false},
		"a taint more": {func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "l"}) },
			false},
		"a label as a taint's": {func(n *corev1.Node) { n.Spec.Taints = nil; n.Labels["k"] = "v" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			make := func() *corev1.Node {
				n := node("n", nil)
				n.Labels["empty"], n.Spec.Taints = "", []corev1.Taint{taint}
				return n
			}
			s, changed := New(0), make()
			slot := s.SetNode(make())
			test.change(changed)
			if got := s.View(slot).describes(changed); got != test.same {
				t.Errorf("describes it: %v", got)
			}
			if got := shapeKey(changed) == shapeKey(make()); got != test.same {
				t.Errorf("has the same key: %v", got)
			}
			changed.Name = "n"
			before := s.ShapeOf(slot)
			if s.SetNode(changed); (s.ShapeOf(slot) == before) != test.same || s.Shapes() != 1 {
				t.Errorf("has shape %d after %d, of %d", s.ShapeOf(slot), before, s.Shapes())
			}
			if _, ok := s.View(slot).Shape.Labels[corev1.LabelHostname]; ok {
				t.Error("the shape has a hostname")
			}
		})
	}
}

// A shape's number is not used for another one.
func TestShapeIDsAreNotUsedAgain(t *testing.T) {
	s, seen := New(0), map[ShapeID]bool{0: true}
	for i := range 5 {
		n := node("n", nil)
		n.Labels["i"] = fmt.Sprint(i)
		if id := s.ShapeOf(s.SetNode(n)); seen[id] {
			t.Errorf("shape %d comes twice", id)
		} else {
			seen[id] = true
		}
	}
}

// Each kind of change of a node is noted by itself, and as a gain where a Pod may fit afterwards.
func TestNodeChangesAreNoted(t *testing.T) {
	host := func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "h" }
	for name, test := range map[string]struct {
		change          func(*corev1.Node)
		changed, gained bool
	}{
		"nothing":     {func(*corev1.Node) {}, false, false},
		"hostname":    {host, true, true},
		"no hostname": {func(n *corev1.Node) { delete(n.Labels, corev1.LabelHostname) }, true, true},
		"label":       {func(n *corev1.Node) { n.Labels["zone"] = "b" }, true, true},
		"grows":       {func(n *corev1.Node) { n.Status.Allocatable = cpu("5") }, true, true},
		"shrinks":     {func(n *corev1.Node) { n.Status.Allocatable = cpu("3") }, true, false},
		"grows and shrinks": {func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{
				gpu: resource.MustParse("1")}
		}, true, true},
		"offers nothing any more": {func(n *corev1.Node) { n.Status.Allocatable = nil }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(0)
			s.SetNode(node("n", cpu("4")))
			s.TakeGains()
			version, n := s.Version(), node("n", cpu("4"))
			test.change(n)
			s.SetNode(n)
			if changed := s.Version() != version; changed != test.changed {
				t.Errorf("changed is %v", changed)
			}
			if gained := len(s.TakeGains()) == 1; gained != test.gained {
				t.Errorf("gained is %v", gained)
			}
		})
	}
	s := New(0)
	s.SetPod(identified("p"), "ghost", usage(s, "1"))
	version := s.Version()
	s.RemoveNode("ghost")
	s.RemoveNode("none")
	if s.Version() != version || s.Nodes() != 0 {
		t.Error("the end of a node that is not there was noted")
	}
}

// A slot is used again, the last that became free first, and by one node at a time.
func TestSlotsAreUsedAgain(t *testing.T) {
	s := New(0)
	slots := map[string]Slot{}
	for _, name := range []string{"a", "b", "c"} {
		slots[name] = s.SetNode(node(name, corev1.ResourceList{gpu: resource.MustParse("1")}))
	}
	s.RemoveNode("a")
	s.RemoveNode("b")
	d, e, f := s.SetNode(node("d", nil)), s.SetNode(node("e", nil)), s.SetNode(node("f", nil))
	if d != slots["b"] || e != slots["a"] || f != 3 || s.Slots() != 4 || s.Nodes() != 4 {
		t.Errorf("slots are %d, %d, %d of %d with %d nodes", d, e, f, s.Slots(), s.Nodes())
	}
	if s.Node(d).Free(s.resources[gpu]) != 0 || s.Name(d) != "d" || s.Slot("b") != None {
		t.Error("something is left of the node that was there before")
	}
	if s.Node(f).Free(s.resources[gpu]) != 0 {
		t.Error("a new node has an extended resource")
	}
}

// Nodes that differ in the hostname alone share a shape; it goes with the last of them.
func TestShapes(t *testing.T) {
	s := New(0)
	a, b := s.SetNode(node("a", nil)), s.SetNode(node("b", nil))
	other := node("c", nil)
	other.Labels["zone"] = "z"
	c := s.SetNode(other)
	if s.ShapeOf(a) != s.ShapeOf(b) || s.ShapeOf(a) == s.ShapeOf(c) || s.Shapes() != 2 {
		t.Errorf("shapes are %d, %d, %d", s.ShapeOf(a), s.ShapeOf(b), s.ShapeOf(c))
	}
	for slot, host := range map[Slot]string{a: "a", b: "b", c: "c"} {
		if n := s.View(slot).Node(); n.Name != host || n.Labels[corev1.LabelHostname] != host ||
			n.Labels["zone"] == "" {
			t.Errorf("node %s looks like %v", host, n.ObjectMeta)
		}
	}
	s.RemoveNode("c")
	if s.Shapes() != 1 {
		t.Errorf("%d shapes after the last node of one is gone", s.Shapes())
	}
}

func TestByHostname(t *testing.T) {
	s := New(0)
	alias := func(name, host string) *corev1.Node {
		n := node(name, nil)
		n.Labels[corev1.LabelHostname] = host
		return n
	}
	plain, first, second := s.SetNode(node("h", nil)), s.SetNode(alias("x", "h")), s.SetNode(alias("y", "h"))
	if got := s.ByHostname("h"); !slices.Equal(got, []Slot{plain, first, second}) {
		t.Errorf("hostname h is on %v", got)
	}
	third := s.SetNode(alias("z", "h"))
	s.RemoveNode("y")
	if got := s.ByHostname("h"); !slices.Equal(got, []Slot{plain, first, third}) {
		t.Errorf("hostname h is on %v", got)
	}
	if host, ok := s.Hostname(first); host != "h" || !ok {
		t.Errorf("the hostname of x is %q, %v", host, ok)
	}
	s.RemoveNode("z")
	s.SetNode(alias("x", "other"))
	s.SetNode(alias("h", "elsewhere"))
	if got := s.ByHostname("h"); len(got) > 0 {
		t.Errorf("hostname h is still on %v", got)
	}
	if got := s.ByHostname("elsewhere"); !slices.Equal(got, []Slot{plain}) {
		t.Errorf("hostname elsewhere is on %v", got)
	}
}
