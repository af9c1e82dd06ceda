package columns

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// shaped returns a node of two labels and two taints, and whatever changes it.
func shaped(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := domainNode(name, map[string]string{"zone": "a", "disk": "ssd", corev1.LabelHostname: name})
	n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule},
		{Key: "l", Effect: corev1.TaintEffectNoExecute}}
	for _, c := range change {
		c(n)
	}
	return n
}

// What makes a shape of its own, whether a node comes with it or changes to it, and what does not.
func TestWhatMakesAShape(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		same   bool
	}{
		"nothing":          {func(*corev1.Node) {}, true},
		"another hostname": {func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "x" }, true},
		"no hostname":      {func(n *corev1.Node) { delete(n.Labels, corev1.LabelHostname) }, true},
		"what it offers": {func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{gpu: resource.MustParse("1")}
		}, true},
		"annotations":         {func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, true},
		"when it was tainted": {func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = &n.CreationTimestamp }, true},
		"another value":       {func(n *corev1.Node) { n.Labels["zone"] = "b" }, false},
		"a label more":        {func(n *corev1.Node) { n.Labels["rack"] = "1" }, false},
		"a label less":        {func(n *corev1.Node) { delete(n.Labels, "zone") }, false},
		"a label for another": {func(n *corev1.Node) { delete(n.Labels, "zone"); n.Labels["rack"] = "a" }, false},
		"a cordon":            {func(n *corev1.Node) { n.Spec.Unschedulable = true }, false},
		"a taint more": {func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints,
				corev1.Taint{Key: "m"})
		}, false},
		"a taint less":    {func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[:1] }, false},
		"a taint's key":   {func(n *corev1.Node) { n.Spec.Taints[1].Key = "m" }, false},
		"a taint's value": {func(n *corev1.Node) { n.Spec.Taints[0].Value = "w" }, false},
		"a taint's effect": {func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute },
			false},
		"where a key ends": {func(n *corev1.Node) { delete(n.Labels, "zone"); n.Labels["zon"] = "ea" }, false},
		"a label's like a taint": {func(n *corev1.Node) { n.Labels["k"], n.Spec.Taints = "v", n.Spec.Taints[1:] },
			false},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(0)
			first, other := s.SetNode(shaped("n")), s.SetNode(shaped("m", test.change))
			if same := s.ShapeOf(first) == s.ShapeOf(other); same != test.same {
				t.Errorf("a node that comes with it is of one shape with the other: %v", same)
			}
			want := 2
			if test.same {
				want = 1
			}
			if s.Shapes() != want {
				t.Errorf("there are %d shapes, want %d", s.Shapes(), want)
			}
			before := s.ShapeOf(first)
			s.SetNode(shaped("n", test.change))
			if same := s.ShapeOf(first) == before; same != test.same {
				t.Errorf("a node that changes to it keeps its shape: %v", same)
			}
			if s.Shapes() != 1 || s.ShapeOf(first) != s.ShapeOf(other) {
				t.Errorf("there are %d shapes of two nodes that are alike", s.Shapes())
			}
		})
	}
}

// A shape that comes again is another one, so that nothing that was judged before is taken for it.
func TestShapesAreNotUsedAgain(t *testing.T) {
	s := New(0)
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	slot := s.SetNode(shaped("n"))
	seen := map[ShapeID]bool{0: true}
	for i := range 6 {
		if id := s.ShapeOf(slot); seen[id] {
			t.Errorf("step %d: shape %d is used again", i, id)
		} else {
			seen[id] = true
		}
		if i%2 == 0 {
			s.SetNode(shaped("n", cordon))
		} else {
			s.SetNode(shaped("n"))
		}
	}
	if s.RemoveNode("n"); s.ShapeOf(slot) != 0 || s.Shapes() != 0 {
		t.Errorf("a node that is gone is of shape %d of %d", s.ShapeOf(slot), s.Shapes())
	}
}

// The object that a View makes is the node as library functions read it, whichever node of the shape was asked before.
func TestViewMakesTheNode(t *testing.T) {
	s := New(0)
	plain := s.SetNode(shaped("n"))
	renamed := s.SetNode(shaped("m", func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "host" }))
	bare := s.SetNode(shaped("o", func(n *corev1.Node) { delete(n.Labels, corev1.LabelHostname) }))
	for _, slot := range []Slot{plain, renamed, bare, plain, bare, renamed} {
		n := s.View(slot).Node()
		want, has := map[Slot]string{plain: "n", renamed: "host"}[slot], slot != bare
		host, ok := n.Labels[corev1.LabelHostname]
		if n.Name != s.Name(slot) || host != want || ok != has || n.Labels["zone"] != "a" || len(n.Spec.Taints) != 2 ||
			n.Spec.Unschedulable {
			t.Errorf("node %s looks like %+v", s.Name(slot), n)
		}
		if got, ok := s.Hostname(slot); got != want || ok != has {
			t.Errorf("the hostname of %s is %q, %v", s.Name(slot), got, ok)
		}
	}
	if labels := s.View(plain).Labels; len(labels) != 2 {
		t.Errorf("the labels of the shape are %v", labels)
	}
	if tainted := s.View(plain).Taints; tainted[0].Value != "v" || tainted[1].Effect != corev1.TaintEffectNoExecute {
		t.Errorf("the taints of the shape are %v", tainted)
	}
}

// labelOf reads any label of a node, its hostname too, and none of a slot without a Node object.
func TestLabelOf(t *testing.T) {
	s := New(0)
	slot := s.SetNode(shaped("n"))
	s.SetPod(identified("p"), "ghost", s.Usage(identified("p")))
	for _, test := range []struct {
		slot       Slot
		key, value string
		has        bool
	}{
		{slot, "zone", "a", true},
		{slot, corev1.LabelHostname, "n", true},
		{slot, "rack", "", false},
		{s.Slot("ghost"), "zone", "", false},
		{s.Slot("ghost"), corev1.LabelHostname, "", false},
	} {
		if value, has := s.labelOf(test.slot, test.key); value != test.value || has != test.has {
			t.Errorf("label %s of %s is %q, %v", test.key, s.Name(test.slot), value, has)
		}
	}
}
