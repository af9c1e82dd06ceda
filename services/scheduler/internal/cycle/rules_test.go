package cycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func taints(taints ...corev1.Taint) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, taints...) }
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func tolerating(tolerations ...corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, tolerations...) }
}

func selecting(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func requiring(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
}

func preferring(weight int32, key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		}
		a := p.Spec.Affinity.NodeAffinity
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: expression(key, corev1.NodeSelectorOpIn, value)})
	}
}

func expression(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func named(operator corev1.NodeSelectorOperator, names ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: operator, Values: names}}}
}

func asking(name corev1.ResourceName, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(amount) }
}

func offering(name corev1.ResourceName, amount string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Allocatable[name] = resource.MustParse(amount) }
}

func hostPort(port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: port, Protocol: corev1.ProtocolTCP}}
	}
}

type nodeChanges = []func(*corev1.Node)
type podChanges = []func(*corev1.Pod)

// One node, and one Pod that it can take or not.
func TestFilters(t *testing.T) {
	const (
		affinity = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
		tainted  = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
		cordon   = "0/1 nodes are available: 1 node(s) were unschedulable."
		noPort   = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
	)
	controlPlane := corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	for name, test := range map[string]struct {
		node   nodeChanges
		pod    podChanges
		reason string
	}{
		"POD-002: a Pod that asks for nothing":  {nil, nil, ""},
		"POD-034: spec.os.name does not matter": {nil, podChanges{func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }}, ""},
		"POD-035: selector on the OS":           {nil, podChanges{selecting(corev1.LabelOSStable, "windows")}, affinity},
		"POD-035: selector on its OS":           {nil, podChanges{selecting(corev1.LabelOSStable, "linux")}, ""},
		"selector on a label it lacks":          {nil, podChanges{selecting("disk", "ssd")}, affinity},

		"SET-134, SET-133: matchFields names the node": {nil, podChanges{requiring(named(corev1.NodeSelectorOpIn, "n"))}, ""},
		"SET-134: matchFields names another":           {nil, podChanges{requiring(named(corev1.NodeSelectorOpIn, "m"))}, affinity},
		"matchFields excludes the node":                {nil, podChanges{requiring(named(corev1.NodeSelectorOpNotIn, "n"))}, affinity},
		"terms are ORed":                               {nil, podChanges{requiring(named(corev1.NodeSelectorOpIn, "m"), expression(corev1.LabelOSStable, corev1.NodeSelectorOpExists))}, ""},
		"an empty term matches nothing":                {nil, podChanges{requiring(corev1.NodeSelectorTerm{})}, affinity},
		"NotIn":                                        {nil, podChanges{requiring(expression(corev1.LabelOSStable, corev1.NodeSelectorOpNotIn, "linux"))}, affinity},
		"DoesNotExist":                                 {nil, podChanges{requiring(expression("disk", corev1.NodeSelectorOpDoesNotExist))}, ""},
		"Gt":                                           {nodeChanges{labelled("size", "5")}, podChanges{requiring(expression("size", corev1.NodeSelectorOpGt, "4"))}, ""},
		"Lt":                                           {nodeChanges{labelled("size", "5")}, podChanges{requiring(expression("size", corev1.NodeSelectorOpLt, "5"))}, affinity},
		"hostname selector":                            {nil, podChanges{selecting(corev1.LabelHostname, "n")}, ""},
		"another hostname":                             {nil, podChanges{selecting(corev1.LabelHostname, "m")}, affinity},
		"hostname and another label":                   {nil, podChanges{selecting(corev1.LabelHostname, "n"), requiring(expression("disk", corev1.NodeSelectorOpExists))}, affinity},

		"SET-124: taint NoSchedule":                 {nodeChanges{taints(controlPlane)}, nil, tainted},
		"SET-123: tolerated":                        {nodeChanges{taints(controlPlane)}, podChanges{tolerating(exists(controlPlane.Key, corev1.TaintEffectNoSchedule))}, ""},
		"taint NoExecute keeps new Pods away":       {nodeChanges{taints(notReady)}, nil, tainted},
		"SET-146, SET-147: daemon Pods tolerate it": {nodeChanges{taints(notReady)}, podChanges{tolerating(exists(notReady.Key, corev1.TaintEffectNoExecute))}, ""},
		"a toleration of another effect":            {nodeChanges{taints(notReady)}, podChanges{tolerating(exists(notReady.Key, corev1.TaintEffectNoSchedule))}, tainted},
		"an empty key tolerates everything":         {nodeChanges{taints(notReady, controlPlane)}, podChanges{tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})}, ""},
		"one of two taints tolerated":               {nodeChanges{taints(notReady, controlPlane)}, podChanges{tolerating(exists(notReady.Key, ""))}, tainted},
		"PreferNoSchedule only prefers":             {nodeChanges{taints(corev1.Taint{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule})}, nil, ""},
		"a value that differs":                      {nodeChanges{taints(corev1.Taint{Key: "k", Value: "a", Effect: corev1.TaintEffectNoSchedule})}, podChanges{tolerating(corev1.Toleration{Key: "k", Value: "b"})}, tainted},
		"SAF-052, SAF-057: a cordoned node":         {nodeChanges{cordoned}, nil, cordon},
		"SET-142: daemon Pods go to cordoned nodes": {nodeChanges{cordoned}, podChanges{tolerating(exists(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule))}, ""},
		"what it is comes before what room it has":  {nodeChanges{cordoned}, podChanges{asking(corev1.ResourceCPU, "64")}, cordon},
		"what is asked for comes before all":        {nodeChanges{cordoned, taints(controlPlane)}, podChanges{selecting("disk", "ssd")}, affinity},

		"SCH-033: too little cpu":   {nil, podChanges{asking(corev1.ResourceCPU, "4001m")}, "0/1 nodes are available: 1 Insufficient cpu."},
		"just enough cpu":           {nil, podChanges{asking(corev1.ResourceCPU, "4")}, ""},
		"too little of several":     {nil, podChanges{asking(corev1.ResourceCPU, "5"), asking(corev1.ResourceMemory, "5Gi")}, "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."},
		"ephemeral storage":         {nil, podChanges{asking(corev1.ResourceEphemeralStorage, "1Gi")}, "0/1 nodes are available: 1 Insufficient ephemeral-storage."},
		"ephemeral storage offered": {nodeChanges{offering(corev1.ResourceEphemeralStorage, "1Gi")}, podChanges{asking(corev1.ResourceEphemeralStorage, "1Gi")}, ""},
		"extended resource":         {nil, podChanges{asking("example.com/gpu", "1")}, "0/1 nodes are available: 1 Insufficient example.com/gpu."},
		"extended resource offered": {nodeChanges{offering("example.com/gpu", "1")}, podChanges{asking("example.com/gpu", "1")}, ""},
		"huge pages":                {nodeChanges{offering("hugepages-2Mi", "2Mi")}, podChanges{asking("hugepages-2Mi", "4Mi")}, "0/1 nodes are available: 1 Insufficient hugepages-2Mi."},
		"room for no Pod":           {nodeChanges{offering(corev1.ResourcePods, "0")}, nil, "0/1 nodes are available: 1 Too many pods."},
		"POD-230: an init container reserves": {nil, podChanges{func(p *corev1.Pod) {
			p.Spec.InitContainers = pod("", "5").Spec.Containers
		}}, "0/1 nodes are available: 1 Insufficient cpu."},
		"host port in use": {nil, podChanges{hostPort(9000)}, noPort},
		"another port":     {nil, podChanges{hostPort(9001)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("n", "4", test.node...)
			f.add(pod("running", "0", hostPort(9000), onNode("n")), pod("p", "0", test.pod...))
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
		"more left of everything":      {running: podChanges{asking(corev1.ResourceCPU, "1"), asking(corev1.ResourceMemory, "1Gi")}},
		"more left of memory":          {running: podChanges{asking(corev1.ResourceMemory, "1Gi")}},
		"counts Pods without requests": {running: podChanges{func(*corev1.Pod) {}}},
		"balance of cpu and memory": { // the same mean is left of both, but the worse one's memory would be used up
			better:  nodeChanges{offering(corev1.ResourceCPU, "2"), offering(corev1.ResourceMemory, "2Gi")},
			worse:   nodeChanges{offering(corev1.ResourceCPU, "8"), offering(corev1.ResourceMemory, "1200Mi")},
			running: podChanges{func(p *corev1.Pod) { p.Spec.Containers = nil }},
			pod:     podChanges{asking(corev1.ResourceCPU, "1"), asking(corev1.ResourceMemory, "1Gi")},
		},
		"preferred label": {better: nodeChanges{labelled("disk", "ssd")}, pod: podChanges{preferring(1, "disk", "ssd")}},
		"the weights of preferred terms add up": {
			better: nodeChanges{labelled("a", "1"), labelled("b", "1")}, worse: nodeChanges{labelled("c", "1")},
			pod: podChanges{preferring(30, "a", "1"), preferring(30, "b", "1"), preferring(50, "c", "1")},
		},
		"a preferred hostname":             {pod: podChanges{preferring(1, corev1.LabelHostname, "better")}},
		"fewer taints PreferNoSchedule":    {better: nodeChanges{taints(prefer("a"))}, worse: nodeChanges{taints(prefer("a"), prefer("b"))}},
		"a preference outweighs some load": {better: nodeChanges{labelled("disk", "ssd"), offering(corev1.ResourceCPU, "3")}, pod: podChanges{preferring(1, "disk", "ssd")}},
		"tolerated PreferNoSchedule is no matter": {
			better: nodeChanges{taints(prefer("a"))}, running: podChanges{asking(corev1.ResourceCPU, "1")},
			pod: podChanges{tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists})},
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
		f.node(name, "4000", offering(corev1.ResourceMemory, "4Ti"))
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
