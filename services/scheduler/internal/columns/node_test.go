package columns

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

const (
	gpu  = corev1.ResourceName("example.com/gpu")
	fpga = corev1.ResourceName("example.com/fpga")
)

// asking returns what a Pod takes that asks for these amounts and claims these host ports.
func asking(s *State, requests map[corev1.ResourceName]string, ports ...int32) *Usage {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	for name, amount := range requests {
		c.Resources.Requests[name] = resource.MustParse(amount)
	}
	for _, port := range ports {
		c.Ports = append(c.Ports, corev1.ContainerPort{HostPort: port})
	}
	return s.Usage(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}})
}

// A node without some of its Pods has free what they take, and stays itself as it is.
func TestNodeWithout(t *testing.T) {
	offered := cpu("8")
	offered[gpu], offered[fpga], offered[corev1.ResourcePods] = resource.MustParse("4"), resource.MustParse("4"),
		resource.MustParse("10")
	s := New(0)
	slot := s.SetNode(node("n", offered))
	s.SetNode(node("m", offered))
	s.SetPod(identified("first"), "n", asking(s, nil, 79))
	s.SetPod(identified("a"), "n", asking(s, map[corev1.ResourceName]string{corev1.ResourceCPU: "1", gpu: "1"}, 80, 81))
	s.SetPod(identified("b"), "n", asking(s, map[corev1.ResourceName]string{corev1.ResourceCPU: "2", gpu: "2",
		fpga: "1"}, 80))
	s.SetPod(identified("c"), "m", asking(s, map[corev1.ResourceName]string{corev1.ResourceCPU: "4", gpu: "1"}, 82))
	type free struct {
		cpu, gpu, fpga, pods int64
		port80, port81       bool
	}
	look := func(n Node) free {
		port := func(number int32) bool { return n.PortsFree(asking(s, nil, number).Ports) }
		return free{n.Free(CPU), n.Free(s.resources[gpu]), n.Free(s.resources[fpga]), n.Free(Pods), port(80), port(81)}
	}
	asItIs := free{5000, 1, 3, 7, false, false}
	for name, test := range map[string]struct {
		without []types.UID
		want    free
	}{
		"nothing":                           {nil, asItIs},
		"a":                                 {[]types.UID{"a"}, free{6000, 2, 3, 8, false, true}},
		"b":                                 {[]types.UID{"b"}, free{7000, 3, 4, 8, false, false}},
		"both":                              {[]types.UID{"a", "b"}, free{8000, 4, 4, 9, true, true}},
		"the one whose port comes first":    {[]types.UID{"first"}, free{5000, 1, 3, 8, false, false}},
		"one of them twice":                 {[]types.UID{"a", "a"}, free{6000, 2, 3, 8, false, true}},
		"another node's, a stranger, and b": {[]types.UID{"c", "none", "b"}, free{7000, 3, 4, 8, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			n := s.NodeWithout(slot, test.without...)
			if got := look(n); got != test.want || n.Slot() != slot {
				t.Errorf("free are %+v, want %+v", got, test.want)
			}
			if got := look(s.Node(slot)); got != asItIs {
				t.Errorf("the node itself has free %+v, want %+v", got, asItIs)
			}
		})
	}
	without := s.NodeWithout(slot, "a").Room()
	if as := s.Node(slot).Room(); without.Scored[CPU] != as.Scored[CPU]-1000 ||
		without.Scored[Memory] != as.Scored[Memory]-200<<20 {
		t.Errorf("is scored by %v, want %v less what the Pod counts for", without.Scored, as.Scored)
	}
}

// A later query shows the Pods that were there before.
func TestPodsOnIsAskedLate(t *testing.T) {
	s := New(0)
	slot := s.SetNode(node("n", cpu("4")))
	u := usage(s, "1")
	s.SetPod(identified("p"), "n", u)
	s.SetPod(identified("q"), "n", u)
	s.RemovePod("q")
	if s.podsOn != nil {
		t.Error("lists are kept that nobody asked for")
	}
	if got := maps.Collect(s.PodsOn(slot)); !maps.Equal(got, map[types.UID]*Usage{"p": u}) {
		t.Errorf("on the node are %v", got)
	}
}

// State knows the Pods of each node, through additions and removals in any order.
func TestPodsOn(t *testing.T) {
	s := New(0)
	a, b := s.SetNode(node("a", cpu("4"))), s.SetNode(node("b", cpu("4")))
	one, two := usage(s, "1"), usage(s, "2")
	on := func(slot Slot) map[types.UID]*Usage { return maps.Collect(s.PodsOn(slot)) }
	check := func(wantA, wantB map[types.UID]*Usage) {
		t.Helper()
		if !maps.Equal(on(a), wantA) || !maps.Equal(on(b), wantB) || s.Pods() != len(wantA)+len(wantB) {
			t.Fatalf("on a are %v, on b %v, in all %d", on(a), on(b), s.Pods())
		}
	}
	check(nil, nil)
	for _, uid := range []types.UID{"p", "q", "r"} {
		s.SetPod(identified(uid), "a", one)
	}
	s.SetPod(identified("x"), "b", two)
	check(map[types.UID]*Usage{"p": one, "q": one, "r": one}, map[types.UID]*Usage{"x": two})
	s.RemovePod("q") // between others
	check(map[types.UID]*Usage{"p": one, "r": one}, map[types.UID]*Usage{"x": two})
	s.SetPod(identified("r"), "b", one) // the newest moves
	check(map[types.UID]*Usage{"p": one}, map[types.UID]*Usage{"x": two, "r": one})
	s.SetPod(identified("p"), "a", two) // the only one changes
	s.RemovePod("x")                    // the oldest
	s.RemovePod("x")
	check(map[types.UID]*Usage{"p": two}, map[types.UID]*Usage{"r": one})
	s.SetPod(identified("q"), "a", one)
	s.SetPod(identified("y"), "a", one)
	check(map[types.UID]*Usage{"p": two, "q": one, "y": one}, map[types.UID]*Usage{"r": one})
	seen := 0
	for range s.PodsOn(a) {
		seen++
		break
	}
	if seen != 1 {
		t.Errorf("%d Pods were shown to who wanted one", seen)
	}
	for _, uid := range []types.UID{"y", "p", "q", "r"} {
		s.RemovePod(uid)
	}
	check(nil, nil)
	if len(s.podsOn) != 0 {
		t.Errorf("something is left of %v", s.podsOn)
	}
	if _, ok := s.PodNode("p"); ok {
		t.Error("a Pod that is gone is on a node")
	}
}

// What containers count for in scores that ask for nothing is given back as it was taken.
func TestScoredIsGivenBack(t *testing.T) {
	s := New(0)
	slot := s.SetNode(node("n", cpu("4")))
	s.SetPod(identified("p"), "n", usage(s, ""))
	if got := s.Node(slot).Room().Scored; got != [2]int64{100, 200 << 20} {
		t.Errorf("scored are %v", got)
	}
	s.RemovePod("p")
	if got := s.Node(slot).Room(); got.Scored != [2]int64{} || got.Used != [basic]int64{} {
		t.Errorf("of an empty node %+v is in use", got)
	}
}
