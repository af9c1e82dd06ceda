package balancedallocation_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rules/balancedallocation"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// A hundred less half the distance between the used shares in percent. The node has 4 CPUs and 4 GiB. SCH-138
func TestScore(t *testing.T) {
	const cpu, memory = corev1.ResourceCPU, corev1.ResourceMemory
	asking := func(cpus, mem string) *corev1.Pod {
		return rulestest.Pod("p", rulestest.Requests(cpu, cpus), rulestest.Requests(memory, mem))
	}
	for name, test := range map[string]struct {
		pod     *corev1.Pod
		node    []func(*corev1.Node)
		running *corev1.Pod
		want    int64
	}{
		"the same share of both":        {pod: asking("1", "1Gi"), want: 100},
		"all of one, none of the other": {pod: asking("4", "0"), want: 50},
		"none of one, all of the other": {pod: asking("0", "4Gi"), want: 50},
		"a quarter and three":           {pod: asking("1", "3Gi"), want: 75},
		"what runs counts":              {pod: asking("1", "3Gi"), running: asking("2", "0"), want: 100},
		"more than all counts as all":   {pod: asking("1", "4Gi"), running: asking("8", "0"), want: 100},
		"a node without CPU": {pod: asking("1", "3Gi"),
			node: []func(*corev1.Node){rulestest.Allocatable(cpu, "0")}, want: 100},
		"a node without memory": {pod: asking("1", "3Gi"),
			node: []func(*corev1.Node){rulestest.Allocatable(memory, "0")}, want: 100},
		"no default for what is not told": {pod: asking("4", "0"), running: rulestest.Pod("q"), want: 50},
	} {
		t.Run(name, func(t *testing.T) {
			c := rulestest.New(t, rulestest.Node("n", test.node...))
			if test.running != nil {
				test.running.UID = "running"
				rulestest.OnNode("n")(test.running)
				c.Run(test.running)
			}
			if got := c.Scores(balancedallocation.Rule(), test.pod); !maps.Equal(got,
				map[string]int64{"n": test.want}) {
				t.Errorf("scores are %v, want %d", got, test.want)
			}
		})
	}
}

func TestPodThatAsksForNeitherHasNoScore(t *testing.T) {
	c := rulestest.New(t, rulestest.Node("n"))
	if got := c.Scores(balancedallocation.Rule(), rulestest.Pod("p", rulestest.Requests(corev1.ResourceEphemeralStorage,
		"1Gi"))); got != nil {
		t.Errorf("scores are %v", got)
	}
	for _, one := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if got := c.Scores(balancedallocation.Rule(), rulestest.Pod("p", rulestest.Requests(one, "1"))); got == nil {
			t.Errorf("a Pod that asks for %s has no score", one)
		}
	}
}

// With three resources it is the standard deviation: of a quarter, a half and three quarters 0.204. One is in balance.
func TestScoreOfOtherResources(t *testing.T) {
	const gpu = corev1.ResourceName("example.com/gpu")
	c := rulestest.New(t, rulestest.Node("n", rulestest.Allocatable(gpu, "4")))
	p := rulestest.Pod("p", rulestest.Requests(corev1.ResourceCPU, "1"),
		rulestest.Requests(corev1.ResourceMemory, "2Gi"), rulestest.Requests(gpu, "3"))
	three := balancedallocation.Rule(corev1.ResourceCPU, corev1.ResourceMemory, gpu)
	if got := c.Scores(three, p)["n"]; got != 79 {
		t.Errorf("the score is %d, want 79", got)
	}
	if got := c.Scores(balancedallocation.Rule(gpu), p)["n"]; got != 100 {
		t.Errorf("the score of one is %d, want 100", got)
	}
	if got := c.Scores(balancedallocation.Rule(gpu), rulestest.Pod("q", rulestest.Requests(corev1.ResourceCPU,
		"1"))); got != nil {
		t.Errorf("a Pod that asks for none has scores %v", got)
	}
	if got := c.Scores(balancedallocation.Rule(corev1.ResourcePods, corev1.ResourceCPU), p)["n"]; got != 100 {
		t.Errorf("the score of cpu beside the number of Pods, which counts for nothing, is %d, want 100", got)
	}
	if got := c.Scores(balancedallocation.Rule(corev1.ResourcePods), p); got != nil {
		t.Errorf("by the number of Pods alone it has scores %v", got)
	}
}
