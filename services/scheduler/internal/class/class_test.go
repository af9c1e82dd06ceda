package class_test

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/class"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// fixture counts how often nodes are judged: by shape and by room.
type fixture struct {
	state         *columns.State
	set           *class.Set
	profile       rules.Profile
	shapes, rooms int
}

func newFixture(nodes int) *fixture {
	f := &fixture{state: columns.New(1), set: class.NewSet(), profile: config.DefaultProfile()}
	f.profile.Rules = append(f.profile.Rules, rules.Rule{Name: "Counting", Filter: func(rules.Pod) *rules.Filter {
		return &rules.Filter{Judge: rules.ByShape(func(columns.View) rules.Reasons { f.shapes++; return 0 })}
	}}, rules.Rule{Name: "CountingRoom", Filter: func(rules.Pod) *rules.Filter {
		return &rules.Filter{Judge: rules.ByRoom(func(columns.Node) rules.Reasons { f.rooms++; return 0 })}
	}})
	for i := range nodes {
		f.state.SetNode(node(i))
	}
	return f
}

func node(i int) *corev1.Node {
	name := fmt.Sprintf("n%d", i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name,
			"zone": fmt.Sprint(i % 3)}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods: resource.MustParse("10"),
		}},
	}
}

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "a",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func (f *fixture) join(p *corev1.Pod) *class.Class {
	return f.set.Join(&f.profile, rules.PodOf(p, f.state.Usage(p)))
}

// Pods are of one class when no rule can tell them apart.
func TestClasses(t *testing.T) {
	selector := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "1"} }
	for name, test := range map[string]struct {
		other func(*corev1.Pod)
		same  bool
	}{
		"image":    {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "b" }, false},
		"command":  {func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"b"} }, true},
		"labels":   {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, true},
		"priority": {func(p *corev1.Pod) { p.Spec.Priority = new(int32) }, true},
		"requests": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("200m")
		}, false},
		"selector": {selector, false},
		"tolerations": {func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{
				{Operator: corev1.TolerationOpExists}}
		}, false},
		"host port": {func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 1}} },
			false},
		"affinity": {func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(0)
			if same := f.join(pod()) == f.join(pod(test.other)); same != test.same {
				t.Errorf("one class: %v", same)
			}
		})
	}
}

// Placing Pods of a class judges the node that changed and no other; the shape only once.
func TestCostFollowsChange(t *testing.T) {
	const nodes = 300
	f := newFixture(nodes)
	c := f.join(pod())
	if choice, ok := c.Best(f.state); !ok || choice.Feasible != nodes {
		t.Fatalf("best is %v, %v", choice, ok)
	}
	if f.shapes != 3 || f.rooms != nodes {
		t.Errorf("the first question judged %d shapes and %d nodes, want 3 and %d", f.shapes, f.rooms, nodes)
	}
	for i := range 100 {
		f.rooms = 0
		choice, _ := c.Best(f.state)
		f.state.SetPod(rulestest.Identified(types.UID(fmt.Sprint(i))), f.state.Name(choice.Slot), c.Pod.Usage)
		c.Best(f.state)
		if f.rooms != 1 {
			t.Fatalf("Pod %d judged %d nodes, want 1", i, f.rooms)
		}
	}
	if f.shapes != 3 {
		t.Errorf("%d shapes were judged in all, want 3", f.shapes)
	}
}

// A Pod confined to one node by name looks at no other.
func TestPinnedLooksAtItsNodesOnly(t *testing.T) {
	f := newFixture(300)
	c := f.join(pod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n7"} }))
	if choice, ok := c.Best(f.state); !ok || f.state.Name(choice.Slot) != "n7" || f.rooms != 1 {
		t.Errorf("best is %v, %v after looking at %d nodes", choice, ok, f.rooms)
	}
}

func TestRefusals(t *testing.T) {
	f := newFixture(5)
	cordoned := node(0)
	cordoned.Spec.Unschedulable = true
	f.state.SetNode(cordoned)
	c := f.join(pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("5")
	}))
	want := []class.Reason{{Text: "Insufficient cpu", Nodes: 4}, {Text: "node(s) were unschedulable", Nodes: 1}}
	for range 2 {
		if got := c.Refusals(f.state); !reflect.DeepEqual(got, want) {
			t.Errorf("refusals are %v, want %v", got, want)
		}
	}
	f.state.RemoveNode("n0")
	if got := c.Refusals(f.state); !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("refusals are %v, want %v", got, want[:1])
	}
}

// Classes without Pods are kept for a while and bounded in number; pinned ones go at once.
func TestSetForgets(t *testing.T) {
	f := newFixture(3)
	first := f.join(pod())
	f.set.Leave(first)
	if f.join(pod()) != first {
		t.Error("a class was forgotten that might have been of use")
	}
	for i := range 1100 {
		c := f.join(pod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": fmt.Sprint(i)} }))
		c.Best(f.state)
		f.set.Touch(c, f.state)
		f.set.Leave(c)
	}
	if n := f.set.Len(); n != 1025 {
		t.Errorf("%d classes are kept", n)
	}
	before := f.set.Len()
	for i := range 1000 {
		f.set.Leave(f.join(pod(func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{
				corev1.LabelHostname: fmt.Sprint(i)}
		})))
	}
	if n := f.set.Len(); n != before {
		t.Errorf("%d classes are kept, want %d", n, before)
	}
	if f.join(pod()) != first {
		t.Error("a class was forgotten that has Pods")
	}
}
