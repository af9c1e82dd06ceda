package noderesourcesfit_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rules/noderesourcesfit"
	"keelson.dev/services/scheduler/internal/rulestest"
)

var rule = noderesourcesfit.Rule(noderesourcesfit.Args{Weights: noderesourcesfit.DefaultWeights()})

const (
	cpu, memory, storage = corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage
	gpu                  = corev1.ResourceName("example.com/gpu")
)

// A node of 4 CPUs, 4 GiB and ten Pods.
func TestFilter(t *testing.T) {
	for name, test := range map[string]struct {
		node []func(*corev1.Node)
		pod  []func(*corev1.Pod)
		want []string
	}{
		"asks for nothing": {},
		"SCH-033: too little cpu": {nil, []func(*corev1.Pod){rulestest.Requests(cpu, "4001m")},
			[]string{"Insufficient cpu"}},
		"just enough cpu":    {nil, []func(*corev1.Pod){rulestest.Requests(cpu, "4")}, nil},
		"just enough memory": {nil, []func(*corev1.Pod){rulestest.Requests(memory, "4Gi")}, nil},
		"a byte of memory too much": {nil, []func(*corev1.Pod){rulestest.Requests(memory, "4294967297")},
			[]string{"Insufficient memory"}},
		"too little of several": {nil, []func(*corev1.Pod){rulestest.Requests(cpu, "5"),
			rulestest.Requests(memory, "5Gi")}, []string{"Insufficient cpu", "Insufficient memory"}},
		"ephemeral storage": {nil, []func(*corev1.Pod){rulestest.Requests(storage, "1Gi")},
			[]string{"Insufficient ephemeral-storage"}},
		"ephemeral storage offered": {[]func(*corev1.Node){rulestest.Allocatable(storage, "1Gi")},
			[]func(*corev1.Pod){rulestest.Requests(storage, "1Gi")}, nil},
		"extended resource": {nil, []func(*corev1.Pod){rulestest.Requests(gpu, "1")},
			[]string{"Insufficient example.com/gpu"}},
		"extended resource offered": {[]func(*corev1.Node){rulestest.Allocatable(gpu, "1")},
			[]func(*corev1.Pod){rulestest.Requests(gpu, "1")}, nil},
		"more than is offered": {[]func(*corev1.Node){rulestest.Allocatable(gpu, "1")},
			[]func(*corev1.Pod){rulestest.Requests(gpu, "2")}, []string{"Insufficient example.com/gpu"}},
		"none of a resource": {nil, []func(*corev1.Pod){rulestest.Requests(gpu, "0")}, nil},
		"huge pages": {[]func(*corev1.Node){rulestest.Allocatable("hugepages-2Mi", "2Mi")},
			[]func(*corev1.Pod){rulestest.Requests("hugepages-2Mi", "4Mi")}, []string{"Insufficient hugepages-2Mi"}},
		"room for no Pod": {[]func(*corev1.Node){rulestest.Allocatable(corev1.ResourcePods, "0")}, nil,
			[]string{"Too many pods"}},
		"room for one Pod": {[]func(*corev1.Node){rulestest.Allocatable(corev1.ResourcePods, "1")}, nil, nil},
		"too many Pods, too few CPU": {[]func(*corev1.Node){rulestest.Allocatable(corev1.ResourcePods, "0")},
			[]func(*corev1.Pod){rulestest.Requests(cpu, "5")}, []string{"Too many pods", "Insufficient cpu"}},
		"POD-230: an init container reserves": {nil, []func(*corev1.Pod){func(p *corev1.Pod) {
			p.Spec.InitContainers = rulestest.Pod("", rulestest.Requests(cpu, "5")).Spec.Containers
		}}, []string{"Insufficient cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := rulestest.New(t, rulestest.Node("n", test.node...))
			if got := c.Refusals(rule, rulestest.Pod("p", test.pod...), "n"); !slices.Equal(got, test.want) {
				t.Errorf("refused for %q, want %q", got, test.want)
			}
		})
	}
}

// Judged is the node without some of its Pods: what would be free if they went.
func TestFilterWithoutSomeOfThePods(t *testing.T) {
	c := rulestest.New(t, rulestest.Node("n", rulestest.Allocatable(gpu, "2"),
		rulestest.Allocatable(corev1.ResourcePods, "3"))).Run(
		rulestest.Pod("a", rulestest.OnNode("n"), rulestest.Requests(cpu, "3"), rulestest.Requests(gpu, "1")),
		rulestest.Pod("b", rulestest.OnNode("n"), rulestest.Requests(cpu, "1"), rulestest.Requests(gpu, "1")),
		rulestest.Pod("c", rulestest.OnNode("n")))
	p := rulestest.Pod("p", rulestest.Requests(cpu, "3"), rulestest.Requests(gpu, "1"))
	for without, want := range map[types.UID][]string{
		"uid-none": {"Too many pods", "Insufficient cpu", "Insufficient example.com/gpu"},
		"uid-a":    nil,
		"uid-b":    {"Insufficient cpu"},
		"uid-c":    {"Insufficient cpu", "Insufficient example.com/gpu"},
	} {
		if got := c.Refusals(rule, p, "n", without); !slices.Equal(got, want) {
			t.Errorf("without %s refused for %q, want %q", without, got, want)
		}
	}
	if got := c.Refusals(rule, p, "n"); len(got) != 3 {
		t.Errorf("the node itself has changed: refused for %q", got)
	}
}

// A filter has 64 texts at most; what a Pod asks for beyond these shares the last.
func TestManyResources(t *testing.T) {
	asking := func(resources int) (*corev1.Pod, *rulestest.Cluster) {
		p := rulestest.Pod("p")
		for i := range resources {
			rulestest.Requests(corev1.ResourceName(fmt.Sprintf("example.com/r%02d", i)), "1")(p)
		}
		return p, rulestest.New(t, rulestest.Node("n"))
	}
	p, c := asking(63) // and the text for the number of Pods
	if got := c.Refusals(rule, p, "n"); len(got) != 63 || got[62] != "Insufficient example.com/r62" {
		t.Errorf("refused for %q", got)
	}
	p, c = asking(64)
	if got := c.Refusals(rule, p, "n"); len(got) != 63 || got[62] != "Insufficient further resources" {
		t.Errorf("refused for %q", got)
	}
	p, c = asking(80)
	enough := rulestest.Node("enough")
	for i := range 79 {
		rulestest.Allocatable(corev1.ResourceName(fmt.Sprintf("example.com/r%02d", i)), "1")(enough)
	}
	if got := rulestest.New(t, enough).Refusals(rule, p, "enough"); !slices.Equal(got,
		[]string{"Insufficient further resources"}) {
		t.Errorf("with all but the last refused for %q", got)
	}
	if got := c.Refusals(rule, p, "n"); len(got) != 63 || got[0] != "Insufficient example.com/r00" ||
		got[62] != "Insufficient further resources" {
		t.Errorf("refused for %q", got)
	}
}

// The mean of the shares in percent that would be left, weighted. SCH-138
func TestScore(t *testing.T) {
	weights := func(cpu, memory, storage int64) []noderesourcesfit.Weight {
		return []noderesourcesfit.Weight{{Resource: columns.CPU, Weight: cpu},
			{Resource: columns.Memory, Weight: memory}, {Resource: columns.Ephemeral, Weight: storage}}
	}
	p := rulestest.Pod("p", rulestest.Requests(cpu, "1"), rulestest.Requests(memory, "1Gi"))
	running := func(change ...func(*corev1.Pod)) *corev1.Pod {
		return rulestest.Pod("r", append(change, rulestest.OnNode("n"))...)
	}
	for name, test := range map[string]struct {
		weights []noderesourcesfit.Weight
		node    []func(*corev1.Node)
		running *corev1.Pod
		want    int64
	}{
		"three quarters left of both": {noderesourcesfit.DefaultWeights(), nil, nil, 75},
		"what runs counts": {noderesourcesfit.DefaultWeights(), nil, running(rulestest.Requests(cpu, "2"),
			rulestest.Requests(memory, "1Gi")), 37},
		"nothing is left": {weights(1, 0, 0), nil, running(rulestest.Requests(cpu, "3"),
			rulestest.Requests(memory, "1")), 0},
		"less than nothing is left": {noderesourcesfit.DefaultWeights(), nil, running(rulestest.Requests(cpu, "8"),
			rulestest.Requests(memory, "0")), 37},
		"weights": {weights(3, 1, 0), nil, running(rulestest.Requests(cpu, "2"),
			rulestest.Requests(memory, "0")), 37},
		"a resource that the node lacks": {weights(1, 1, 5), nil, nil, 75},
		"storage that nobody asks for": {weights(1, 0, 1), []func(*corev1.Node){rulestest.Allocatable(storage, "1Gi")},
			nil, 87},
		"storage that is in use": {weights(0, 0, 1), []func(*corev1.Node){rulestest.Allocatable(storage, "4Gi")},
			running(rulestest.Requests(storage, "1Gi")), 75},
		"a node that has none of them":     {weights(0, 0, 1), nil, nil, 0},
		"Pods without requests count, too": {noderesourcesfit.DefaultWeights(), nil, running(), 71},
	} {
		t.Run(name, func(t *testing.T) {
			c := rulestest.New(t, rulestest.Node("n", test.node...))
			if test.running != nil {
				c.Run(test.running)
			}
			if got := c.Scores(noderesourcesfit.Rule(noderesourcesfit.Args{Weights: test.weights}), p); !maps.Equal(got,
				map[string]int64{"n": test.want}) {
				t.Errorf("scores are %v, want %d", got, test.want)
			}
		})
	}
}

// A resource that the node lacks does not end the sum, and storage counts with what the Pod asks for.
func TestScoreOfFurtherResources(t *testing.T) {
	weights := []noderesourcesfit.Weight{{Resource: columns.CPU, Weight: 1}, {Resource: columns.Memory, Weight: 1},
		{Resource: columns.Ephemeral, Weight: 1}}
	c := rulestest.New(t, rulestest.Node("n", rulestest.Allocatable(cpu, "0"),
		rulestest.Allocatable(storage, "4Gi"))).Run(
		rulestest.Pod("r", rulestest.OnNode("n"), rulestest.Requests(cpu, "0"), rulestest.Requests(memory, "0"),
			rulestest.Requests(storage, "1Gi")))
	p := rulestest.Pod("p", rulestest.Requests(memory, "1Gi"), rulestest.Requests(storage, "2Gi"))
	if got := c.Scores(noderesourcesfit.Rule(noderesourcesfit.Args{Weights: weights}), p)["n"]; got != (75+25)/2 {
		t.Errorf("the score is %d, want the mean of 75 and 25", got)
	}
}

// What the rule reads is the usage, which every key holds.
func TestKey(t *testing.T) {
	if rule.Key != nil || rule.Weight != 1 || rule.Name != "NodeResourcesFit" {
		t.Errorf("the rule is %+v", rule)
	}
	profile := rules.Profile{Name: "p", Rules: []rules.Rule{rule}}
	c := rulestest.New(t)
	key := func(amount string) string {
		return profile.Key(c.Subject(rulestest.Pod("p", rulestest.Requests(cpu, amount))))
	}
	if key("1") != key("1000m") || key("1") == key("2") {
		t.Error("Pods are of one class by what they take")
	}
}
