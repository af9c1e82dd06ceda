package cycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rulestest"
)

type nodeChanges = []func(*corev1.Node)
type podChanges = []func(*corev1.Pod)

// One node, and one Pod that it can take or not. What each rule refuses is tested beside it; here is how they go
// together.
func TestFilters(t *testing.T) {
	const (
		affinity = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
		tainted  = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
		cordon   = "0/1 nodes are available: 1 node(s) were unschedulable."
		noPort   = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
	)
	controlPlane := corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		node   nodeChanges
		pod    podChanges
		reason string
	}{
		"POD-002: a Pod that asks for nothing": {nil, nil, ""},
		"POD-034: spec.os.name does not matter": {nil,
			podChanges{func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }}, ""},
		"a selector": {nil, podChanges{rulestest.Selecting("disk", "ssd")}, affinity},
		"a hostname": {nil, podChanges{rulestest.Selecting(corev1.LabelHostname, "n")}, ""},
		"another hostname": {nil, podChanges{rulestest.Selecting(corev1.LabelHostname, "m")},
			affinity},
		"a taint":  {nodeChanges{rulestest.Tainted(controlPlane)}, nil, tainted},
		"a cordon": {nodeChanges{rulestest.Cordoned}, nil, cordon},
		"what it is comes before what room it has": {nodeChanges{rulestest.Cordoned},
			podChanges{rulestest.Requests(corev1.ResourceCPU, "64")}, cordon},
		"what is asked for comes before all": {nodeChanges{rulestest.Cordoned, rulestest.Tainted(controlPlane)},
			podChanges{rulestest.Selecting("disk", "ssd")}, affinity},
		"a cordon comes before a taint": {nodeChanges{rulestest.Cordoned, rulestest.Tainted(controlPlane)},
			nil, cordon},
		"a port comes before resources": {nil, podChanges{rulestest.HostPort(9000),
			rulestest.Requests(corev1.ResourceCPU, "64")}, noPort},
		"another port": {nil, podChanges{rulestest.HostPort(9001)}, ""},
		"SCH-033: too little cpu": {nil, podChanges{rulestest.Requests(corev1.ResourceCPU, "4001m")},
			"0/1 nodes are available: 1 Insufficient cpu."},
		"just enough cpu": {nil, podChanges{rulestest.Requests(corev1.ResourceCPU, "4")}, ""},
		"too little of several": {nil, podChanges{rulestest.Requests(corev1.ResourceCPU, "5"),
			rulestest.Requests(corev1.ResourceMemory, "5Gi")},
			"0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("n", "4", test.node...)
			f.add(pod("running", "0", rulestest.HostPort(9000), onNode("n")), pod("p", "0", test.pod...))
			v, ok := f.Next(f.now)
			if !ok {
				t.Fatal("not tried")
			}
			if v.Node == "" && v.Message() != test.reason || v.Node != "" && test.reason != "" {
				t.Errorf("placed on %q, or refused: %s", v.Node, v.Message())
			}
		})
	}
}

// A Pod that asks for none of a resource fits on a node that has less than none of it left.
func TestOvercommittedNodeTakesPodsThatAskForNothing(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	f.add(pod("a", "1", onNode("n")), pod("b", "1", onNode("n")), pod("p", "0"), pod("q", "1m"))
	f.want("p:n q:-")
}

// Two nodes, one of which is better. SCH-138
func TestScores(t *testing.T) {
	prefer := func(key string) corev1.Taint {
		return corev1.Taint{Key: key, Effect: corev1.TaintEffectPreferNoSchedule}
	}
	for name, test := range map[string]struct {
		better, worse nodeChanges
		running       podChanges // of a Pod on the worse node
		pod           podChanges
	}{
		"more left of everything": {running: podChanges{rulestest.Requests(corev1.ResourceCPU, "1"),
			rulestest.Requests(corev1.ResourceMemory, "1Gi")}},
		"more left of memory":          {running: podChanges{rulestest.Requests(corev1.ResourceMemory, "1Gi")}},
		"counts Pods without requests": {running: podChanges{func(*corev1.Pod) {}}},
		"balance of cpu and memory": { // the same mean is left of both, but the worse one's memory would be used up
			better: nodeChanges{rulestest.Allocatable(corev1.ResourceCPU, "2"),
				rulestest.Allocatable(corev1.ResourceMemory, "2Gi")},
			worse: nodeChanges{rulestest.Allocatable(corev1.ResourceCPU, "8"),
				rulestest.Allocatable(corev1.ResourceMemory, "1200Mi")},
			running: podChanges{func(p *corev1.Pod) { p.Spec.Containers = nil }},
			pod: podChanges{rulestest.Requests(corev1.ResourceCPU, "1"), rulestest.Requests(corev1.ResourceMemory,
				"1Gi")},
		},
		"preferred label": {better: nodeChanges{rulestest.Labelled("disk", "ssd")},
			pod: podChanges{rulestest.Preferring(1, rulestest.Expression("disk", corev1.NodeSelectorOpIn, "ssd"))}},
		"the weights of preferred terms add up": {
			better: nodeChanges{rulestest.Labelled("a", "1"), rulestest.Labelled("b", "1")},
			worse:  nodeChanges{rulestest.Labelled("c", "1")},
			pod: podChanges{rulestest.Preferring(30, rulestest.Expression("a", corev1.NodeSelectorOpIn, "1")),
				rulestest.Preferring(30, rulestest.Expression("b", corev1.NodeSelectorOpIn, "1")),
				rulestest.Preferring(50, rulestest.Expression("c", corev1.NodeSelectorOpIn, "1"))},
		},
		"a preferred hostname": {pod: podChanges{rulestest.Preferring(1,
			rulestest.Expression(corev1.LabelHostname, corev1.NodeSelectorOpIn, "better"))}},
		"fewer taints PreferNoSchedule": {better: nodeChanges{rulestest.Tainted(prefer("a"))},
			worse: nodeChanges{rulestest.Tainted(prefer("a"), prefer("b"))}},
		"a preference outweighs some load": {better: nodeChanges{rulestest.Labelled("disk", "ssd"),
			rulestest.Allocatable(corev1.ResourceCPU, "3")},
			pod: podChanges{rulestest.Preferring(1, rulestest.Expression("disk", corev1.NodeSelectorOpIn, "ssd"))}},
		"tolerated PreferNoSchedule is no matter": {
			better:  nodeChanges{rulestest.Tainted(prefer("a"))},
			running: podChanges{rulestest.Requests(corev1.ResourceCPU, "1")},
			pod:     podChanges{rulestest.Tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, order := range [][]string{{"worse", "better"}, {"better", "worse"}} {
				f := newFixture(t)
				for _, name := range order {
					f.node(name, "4", map[string]nodeChanges{"worse": test.worse, "better": test.better}[name]...)
				}
				// More Pods on the better node, so that no tie-break decides for it.
				nothing := func(p *corev1.Pod) { p.Spec.Containers = nil }
				f.add(pod("x", "0", nothing, onNode("better")), pod("y", "0", nothing, onNode("better")))
				if test.running != nil {
					f.add(pod("running", "0", append(test.running, onNode("worse"))...))
				}
				f.add(pod("p", "100m", test.pod...))
				f.want("p:better")
			}
		})
	}
}

// Identical Pods spread over identical nodes, also when a single one hardly changes the score of a large node.
func TestIdenticalPodsSpread(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		f.node(name, "4000", rulestest.Allocatable(corev1.ResourceMemory, "4Ti"))
	}
	perNode := map[string]int{}
	for i := range 8 {
		f.add(pod(string(rune('0'+i)), "10m"))
		v, _ := f.Next(f.now)
		perNode[v.Node]++
	}
	for name, n := range perNode {
		if n != 2 {
			t.Errorf("%d of 8 Pods are on %s, want 2: %v", n, name, perNode)
		}
	}
}
