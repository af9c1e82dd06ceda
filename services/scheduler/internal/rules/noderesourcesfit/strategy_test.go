package noderesourcesfit_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules/noderesourcesfit"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// The scores of a resource by how much of 200 is used.
func TestStrategies(t *testing.T) {
	line := noderesourcesfit.RequestedToCapacityRatio([]noderesourcesfit.Point{{10, 0}, {50, 100}, {90, 20}})
	for used, want := range map[int64][3]int64{
		0: {100, 0, 0}, 20: {90, 10, 0}, 22: {89, 11, 2}, 60: {70, 30, 50}, 100: {50, 50, 100}, 101: {49, 50, 100},
		140: {30, 70, 60}, 180: {10, 90, 20}, 200: {0, 100, 20}, 201: {0, 100, 20}, 900: {0, 100, 20},
	} {
		got := [3]int64{noderesourcesfit.LeastAllocated(used, 200), noderesourcesfit.MostAllocated(used, 200),
			line(used, 200)}
		if got != want {
			t.Errorf("%d used: scores %v, want %v", used, got, want)
		}
	}
}

// The node has 4 CPUs, 4 GiB and 4 devices, of which one is in use. Resources of score 0 count unless the strategy is
// the ratio, which rounds.
func TestStrategyOverResources(t *testing.T) {
	const gpu = corev1.ResourceName("example.com/gpu")
	most := noderesourcesfit.Args{Strategy: noderesourcesfit.MostAllocated, Weights: append(
		noderesourcesfit.DefaultWeights(), noderesourcesfit.Weight{Name: gpu, Weight: 2})}
	ratio := most
	ratio.Ratio = true
	ratio.Strategy = noderesourcesfit.RequestedToCapacityRatio([]noderesourcesfit.Point{{25, 0}, {100, 75}})
	for name, test := range map[string]struct {
		args noderesourcesfit.Args
		ask  []func(*corev1.Pod)
		want int64
	}{
		"the most, without the device": {most, nil, 37}, // 25, 50
		// 25, 50, 75 twice
		"the most":           {most, []func(*corev1.Pod){rulestest.Requests(gpu, "2")}, 56},
		"the ratio":          {ratio, nil, 25},                                               // 0 left out
		"the ratio, rounded": {ratio, []func(*corev1.Pod){rulestest.Requests(gpu, "3")}, 58}, // 25, 75 twice
		"the number of Pods counts for nothing": {noderesourcesfit.Args{Weights: append(
			noderesourcesfit.DefaultWeights(), noderesourcesfit.Weight{Resource: columns.Pods, Weight: 50})}, nil, 62},
		"a device that the node lacks": {noderesourcesfit.Args{Weights: []noderesourcesfit.Weight{{Name: "a/b",
			Weight: 1}}}, []func(*corev1.Pod){rulestest.Requests("a/b", "1")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := rulestest.New(t, rulestest.Node("n", rulestest.Allocatable(gpu, "4"))).Run(rulestest.Pod("r",
				rulestest.OnNode("n"), rulestest.Requests(gpu, "1"), rulestest.Requests(cpu, "0"),
				rulestest.Requests(memory, "0")))
			p := rulestest.Pod("p", append(test.ask, rulestest.Requests(cpu, "1"),
				rulestest.Requests(memory, "2Gi"))...)
			if got := c.Scores(noderesourcesfit.Rule(test.args), p); !maps.Equal(got,
				map[string]int64{"n": test.want}) {
				t.Errorf("scores are %v, want %d", got, test.want)
			}
		})
	}
}

// What is ignored refuses no node, the rest does.
func TestIgnoredResources(t *testing.T) {
	rule := noderesourcesfit.Rule(noderesourcesfit.Args{Weights: noderesourcesfit.DefaultWeights(),
		Ignored: func(name corev1.ResourceName) bool { return name == "a/b" }})
	c := rulestest.New(t, rulestest.Node("n"))
	if got := c.Refusals(rule, rulestest.Pod("p", rulestest.Requests("a/b", "1")), "n"); got != nil {
		t.Errorf("refused for %q", got)
	}
	if got := c.Refusals(rule, rulestest.Pod("p", rulestest.Requests("a/c", "1")), "n"); len(got) != 1 {
		t.Errorf("refused for %q", got)
	}
}
