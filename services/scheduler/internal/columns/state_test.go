package columns

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(name string, allocatable corev1.ResourceList) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a", corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: allocatable},
	}
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
	s.SetPod("p", "n", usage(s, "1"))
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
	s.SetPod("p", "a", u)
	version := s.Version()
	s.SetPod("p", "a", u)
	if s.Version() != version || s.Node(s.Slot("a")).Free(CPU) != 3000 {
		t.Error("a repeated SetPod changed something")
	}
	s.SetPod("p", "b", u)
	if at, _ := s.PodNode("p"); at != "b" || s.Node(s.Slot("a")).Free(CPU) != 4000 || s.Node(s.Slot("b")).Free(CPU) != 3000 {
		t.Error("the Pod was not moved")
	}
	s.SetPod("p", "b", usage(s, "2"))
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
		"Pod comes":             {func(s *State) { s.SetPod("q", "n", usage(s, "1")) }, true, false},
		"Pod goes":              {func(s *State) { s.RemovePod("p") }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(0)
			s.SetNode(node("n", cpu("4")))
			s.SetPod("p", "n", usage(s, "1"))
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
	s.SetPod("p", "n", usage(s, "1"))
	if got, ok := collect(); !ok || !slices.Equal(got, []Slot{other, slot}) {
		t.Errorf("changed are %v, %v", got, ok)
	}
	u := usage(s, "1")
	for range journalMin {
		s.SetPod("q", "n", u)
		s.RemovePod("q")
	}
	if got, ok := collect(); ok || len(got) > 0 {
		t.Error("the journal claims to reach back further than it does")
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
		if n := s.View(slot).Node(); n.Name != host || n.Labels[corev1.LabelHostname] != host || n.Labels["zone"] == "" {
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
	s.SetNode(alias("x", "other"))
	s.RemoveNode("y")
	s.SetNode(alias("h", "elsewhere"))
	if got := s.ByHostname("h"); len(got) > 0 {
		t.Errorf("hostname h is still on %v", got)
	}
	if got := s.ByHostname("elsewhere"); !slices.Equal(got, []Slot{plain}) {
		t.Errorf("hostname elsewhere is on %v", got)
	}
}
