package cycle_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fixture is a Cycle with the default profile, leading.
type fixture struct {
	*cycle.Cycle
	t   *testing.T
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	settings := config.Default()
	settings.Profiles[0].Preempts = false
	c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: 1})
	c.Lead(corev1.DefaultSchedulerName, true, start)
	return &fixture{Cycle: c, t: t, now: start}
}

// node adds a node with that many CPUs and room for ten Pods.
func (f *fixture) node(name, cpu string, change ...func(*corev1.Node)) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name,
			corev1.LabelOSStable: "linux"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("4Gi"),
			corev1.ResourcePods: resource.MustParse("10"),
		}},
	}
	for _, c := range change {
		c(n)
	}
	f.SetNode(n)
}

// pod returns a Pod that asks for that much CPU.
func pod(name, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(
				cpu)}}}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func withPriority(value int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = &value }
}

func onNode(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = name }
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start} }

func (f *fixture) add(pods ...*corev1.Pod) {
	for _, p := range pods {
		f.SetPod(p, f.now)
	}
}

// run decides until nothing is left and returns "pod:node" of each try, in order; without a node "pod:-".
func (f *fixture) run() string {
	var tries []string
	for {
		v, ok := f.Next(f.now)
		if !ok {
			return strings.Join(tries, " ")
		}
		node := v.Node
		if node == "" {
			node = "-"
		}
		tries = append(tries, v.Pod.Name+":"+node)
	}
}

func (f *fixture) want(tries string) {
	f.t.Helper()
	if got := f.run(); got != tries {
		f.t.Fatalf("tried %q, want %q", got, tries)
	}
}

func (f *fixture) wait(d time.Duration) { f.now = f.now.Add(d) }

// SCH-030, SCH-014: by priority, nil as 0, then in the order of arrival.
func TestUrgentPodsGetTheRoom(t *testing.T) {
	f := newFixture(t)
	f.node("n", "2")
	f.add(pod("low", "1", withPriority(-1)), pod("zero", "1", withPriority(0)), pod("nil", "1"),
		pod("another", "1", withPriority(0)), pod("high", "1", withPriority(10)))
	f.want("high:n zero:n nil:- another:- low:-")
}

// SCH-031: P(100) fits nowhere, even empty; Q(0) is placed all the same.
func TestNoHeadOfLineBlocking(t *testing.T) {
	f := newFixture(t)
	f.node("n", "4")
	f.add(pod("p", "64", withPriority(100)), pod("q", "1"))
	f.want("p:- q:n")
}

// SCH-025, SCH-026, SCH-029: a Pod of policy Never preempts no Pod, and is first when room becomes free.
func TestNonPreemptingPodWaitsAndIsFirst(t *testing.T) {
	f := newPreempting(t).fixture
	f.node("n", "1")
	running := pod("running", "1", onNode("n"))
	never := func(p *corev1.Pod) {
		policy := corev1.PreemptNever
		p.Spec.PreemptionPolicy = &policy
	}
	f.add(running, pod("other", "1"), pod("high", "1", withPriority(1_000_000), never))
	f.want("high:- other:-")
	if node := f.Nominated("uid-high"); node != "" {
		t.Errorf("it is nominated for %s", node)
	}
	f.wait(time.Minute)
	f.RemovePod(running)
	f.want("high:n")
	if _, _, waits := f.Unschedulable("uid-other"); !waits {
		t.Error("the other Pod no longer waits")
	}
}

// SCH-004: whatever is switched off, the order of the queue stays by priority.
func TestQueueOrderCannotBeSwitchedOff(t *testing.T) {
	for name, plugins := range map[string]string{
		"nothing":        "{}",
		"every plugin":   "{multiPoint: {disabled: [{name: '*'}]}}",
		"the queue's":    "{queueSort: {disabled: [{name: '*'}]}}",
		"all postFilter": "{postFilter: {disabled: [{name: '*'}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			settings, err := config.Parse([]byte(
				"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
					"profiles: [{plugins: " + plugins + "}]"))
			if err != nil {
				t.Fatal(err)
			}
			f := &fixture{t: t, now: start, Cycle: cycle.New(cycle.Config{Profiles: settings.Profiles,
				Backoff: settings.Backoff,
				Seed:    1})}
			f.Lead(corev1.DefaultSchedulerName, true, start)
			f.node("n", "4")
			f.add(pod("low", "1"), pod("high", "1", withPriority(10)), pod("higher", "1", withPriority(11)))
			f.want("higher:n high:n low:n")
		})
	}
}

// POD-030: gated Pods are not tried; without gates they are.
func TestGates(t *testing.T) {
	f := newFixture(t)
	f.node("n", "4")
	gate := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}} }
	f.add(pod("a", "1", gate), pod("b", "1", gate))
	f.want("")
	if d := f.Depths(); d[cycle.Gated].Pods != 2 {
		t.Errorf("depths are %v", d)
	}
	f.add(pod("a", "1"), pod("b", "1"))
	f.want("a:n b:n")
}

// SET-136: Pods of another scheduler are ignored while they wait and counted once they run.
func TestOtherSchedulersPods(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	other := func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }
	f.add(pod("theirs", "1", other))
	f.want("")
	f.add(pod("theirs", "1", other, onNode("n")), pod("ours", "1"))
	f.want("ours:-")
}

// POD-005: the containers of a Pod are placed as one: room for each on another node is no room.
func TestPodIsNeverSplit(t *testing.T) {
	f := newFixture(t)
	f.node("a", "4")
	f.node("b", "4")
	f.add(pod("p", "3", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0]) }))
	f.want("p:-")
	f.node("c", "6")
	f.wait(time.Hour)
	f.want("p:c")
}

// A Pod that is being deleted is not placed any more.
func TestTerminatingPodIsNotPlaced(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	f.add(pod("p", "1"), pod("p", "1", terminating))
	f.want("")
}

// Each try counts, until the Pod has changed.
func TestAttempts(t *testing.T) {
	f := newFixture(t)
	f.add(pod("p", "1"))
	for i, wait := range []time.Duration{0, 5 * time.Minute, 5 * time.Minute} {
		f.wait(wait)
		if v, ok := f.Next(f.now); !ok || v.Attempt != i+1 {
			t.Errorf("try %d counts as %d, %v", i+1, v.Attempt, ok)
		}
	}
	f.add(pod("p", "2"))
	if v, ok := f.Next(f.now); !ok || v.Attempt != 1 {
		t.Errorf("the first try of a changed Pod counts as %d, %v", v.Attempt, ok)
	}
}

// Only a Pod whose last try found no node has a condition to write.
func TestUnschedulable(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	has := func(name string) bool {
		_, _, ok := f.Unschedulable(types.UID("uid-" + name))
		return ok
	}
	f.add(pod("placed", "1"), pod("refused", "1"))
	if has("placed") || has("none") {
		t.Error("a Pod that was not tried has a condition")
	}
	f.want("placed:n refused:-")
	if has("placed") || !has("refused") {
		t.Errorf("placed %v, refused %v", has("placed"), has("refused"))
	}
	f.Failed("uid-placed", f.now)
	if has("placed") {
		t.Error("a Pod that found a node has a condition")
	}
	f.add(pod("refused", "1", func(p *corev1.Pod) { p.Generation = 4 }))
	if p, c, _ := f.Unschedulable("uid-refused"); p.Generation != 4 || c.ObservedGeneration != 4 {
		t.Errorf("the condition is of generation %d, the Pod of %d", c.ObservedGeneration, p.Generation)
	}
	f.add(pod("refused", "500m"))
	if has("refused") {
		t.Error("a Pod that has changed since its last try has a condition")
	}
}
