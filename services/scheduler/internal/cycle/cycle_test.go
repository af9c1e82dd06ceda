package cycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fixture is a Cycle with the default profile, leading.
type fixture struct {
	*cycle.Cycle
	t   *testing.T
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	c := config.Default()
	y := cycle.New(cycle.Config{Profiles: c.Profiles, Backoff: c.Backoff, Seed: 1})
	y.Lead(corev1.DefaultSchedulerName, true, start)
	return &fixture{Cycle: y, t: t, now: start}
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
	f.add(pod("nil", "1"), pod("low", "1", withPriority(-1)), pod("high", "1", withPriority(10)),
		pod("zero", "1", withPriority(0)))
	f.want("high:n nil:n zero:- low:-")
}

// SCH-031: P(100) fits nowhere, even empty; Q(0) is placed all the same.
func TestNoHeadOfLineBlocking(t *testing.T) {
	f := newFixture(t)
	f.node("n", "4")
	f.add(pod("p", "64", withPriority(100)), pod("q", "1"))
	f.want("p:- q:n")
}

// SCH-025, SCH-026, SCH-029: a Pod of policy Never takes nobody's room, and is first when some becomes free.
func TestNonPreemptingPodWaitsAndIsFirst(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	running := pod("running", "1", onNode("n"))
	never := func(p *corev1.Pod) {
		policy := corev1.PreemptNever
		p.Spec.PreemptionPolicy = &policy
	}
	f.add(running, pod("other", "1"), pod("high", "1", withPriority(1_000_000), never))
	f.want("high:- other:-")
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
			c, err := config.Parse([]byte(
				"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
					"profiles: [{plugins: " + plugins + "}]"))
			if err != nil {
				t.Fatal(err)
			}
			f := &fixture{t: t, now: start, Cycle: cycle.New(cycle.Config{Profiles: c.Profiles, Backoff: c.Backoff,
				Seed: 1})}
			f.Lead(corev1.DefaultSchedulerName, true, start)
			f.node("n", "4")
			f.add(pod("low", "1"), pod("high", "1", withPriority(10)), pod("higher", "1", withPriority(11)))
			f.want("higher:n high:n low:n")
		})
	}
}

// SCH-027: while it waits for its delay, a Pod of lower priority may take the room.
func TestDelayedPodIsPassed(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	f.add(pod("high", "1", withPriority(5)))
	f.want("high:n")
	f.Failed("uid-high", f.now)
	f.add(pod("low", "1"))
	f.want("low:n")
	f.wait(time.Second)
	f.want("high:-")
}

// SCH-032, DEP-155, POD-046, SAF-062: what helps a parked Pod wakes it, and nothing else does.
func TestWhatWakes(t *testing.T) {
	tolerating := func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	}
	taint := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} }
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	label := func(n *corev1.Node) { n.Labels["disk"] = "ssd" }
	picky := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }
	pinned := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n"} }
	full := func(f *fixture) {
		f.node("n", "1")
		f.add(pod("running", "1", onNode("n")))
	}
	for name, test := range map[string]struct {
		before func(*fixture)
		pod    *corev1.Pod
		event  func(*fixture)
		want   string
	}{
		"a node comes":              {func(*fixture) {}, pod("p", "1"), func(f *fixture) { f.node("n", "1") }, "p:n"},
		"a node too small comes":    {func(*fixture) {}, pod("p", "1"), func(f *fixture) { f.node("n", "500m") }, ""},
		"the node grows":            {full, pod("p", "1"), func(f *fixture) { f.node("n", "2") }, "p:n"},
		"the node grows too little": {full, pod("p", "1"), func(f *fixture) { f.node("n", "1500m") }, ""},
		"a Pod goes": {full, pod("p", "1"), func(f *fixture) { f.RemovePod(pod("running", "1")) },
			"p:n"},
		"a Pod ends": {full, pod("p", "1"), func(f *fixture) {
			f.add(pod("running", "1", onNode("n"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		}, "p:n"},
		"a Pod is being deleted": {full, pod("p", "1"),
			func(f *fixture) { f.add(pod("running", "1", onNode("n"), terminating)) }, ""},
		"a Pod that was being deleted is gone": {func(f *fixture) {
			full(f)
			f.add(pod("running", "1", onNode("n"), terminating))
		}, pod("p", "1"), func(f *fixture) { f.RemovePod(pod("running", "1", onNode("n"), terminating)) }, "p:n"},
		"a Pod goes, not enough": {full, pod("p", "2"), func(f *fixture) { f.RemovePod(pod("running", "1")) }, ""},
		"a Pod is scaled down": {full, pod("p", "500m"),
			func(f *fixture) { f.add(pod("running", "500m", onNode("n"))) }, "p:n"},
		"uncordoned": {func(f *fixture) { f.node("n", "1", cordon) }, pod("p", "1"),
			func(f *fixture) { f.node("n", "1") }, "p:n"},
		"untainted": {func(f *fixture) { f.node("n", "1", taint) }, pod("p", "1"),
			func(f *fixture) { f.node("n", "1") }, "p:n"},
		"the Pod tolerates now": {func(f *fixture) { f.node("n", "1", taint) }, pod("p", "1"),
			func(f *fixture) { f.add(pod("p", "1", tolerating)) }, "p:n"},
		"relabelled": {func(f *fixture) { f.node("n", "1") }, pod("p", "1", picky),
			func(f *fixture) { f.node("n", "1", label) }, "p:n"},
		"its own node comes": {func(f *fixture) { f.node("m", "1") }, pod("p", "1", pinned),
			func(f *fixture) { f.node("n", "1") }, "p:n"},
		"another node comes": {func(f *fixture) { f.node("m", "1") }, pod("p", "1", pinned),
			func(f *fixture) { f.node("o", "1") }, ""},
		"its status changes": {full, pod("p", "1"),
			func(f *fixture) { f.add(pod("p", "1", func(p *corev1.Pod) { p.ResourceVersion = "2" })) }, ""},
		"a binding fails": {func(f *fixture) {
			f.node("n", "1")
			f.add(pod("q", "1", withPriority(1)))
			f.run()
		}, pod("p", "1"), func(f *fixture) { f.Failed("uid-q", f.now) }, "p:n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			test.before(f)
			f.add(test.pod)
			f.want("p:-")
			f.wait(time.Minute) // its delay is over
			f.want("")
			test.event(f)
			f.want(test.want)
		})
	}
}

// Of many parked Pods of one class, an event wakes as many as get a node, the most urgent first. SCH-032
func TestWakesAsManyAsFit(t *testing.T) {
	f := newFixture(t)
	for i := range 200 {
		f.add(pod(fmt.Sprintf("p%03d", i), "1", withPriority(int32(i%2))))
	}
	f.run()
	f.wait(time.Minute)
	f.node("n", "3")
	f.want("p001:n p003:n p005:n")
	if d := f.Depths(); d[queue.Parked].Pods != 197 || d[queue.Active].Pods+d[queue.Backoff].Pods != 0 {
		t.Errorf("the rest is %v", d)
	}
}

// A Pod that was woken and goes away before its turn leaves the room to the next of its class.
func TestWokenPodThatGoesLeavesTheRoom(t *testing.T) {
	f := newFixture(t)
	first, second := pod("first", "1", withPriority(1)), pod("second", "1", withPriority(1))
	f.add(first, second)
	f.want("first:- second:-")
	f.wait(time.Minute)
	f.node("n", "1")
	f.add(pod("small", "0", withPriority(9)))
	if v, ok := f.Next(f.now); !ok || v.Pod.Name != "small" { // wakes first, decides small
		t.Fatalf("tried %v", v.Pod)
	}
	f.RemovePod(first)
	f.want("second:n")
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

// POD-025, POD-026, SAF-121: a Pod that was given a node is not decided upon again, and one seen bound never.
func TestPodIsPlacedOnce(t *testing.T) {
	f := newFixture(t)
	f.node("a", "1")
	f.node("b", "1")
	f.add(pod("p", "1"))
	placed := f.run()
	f.add(pod("p", "1", func(p *corev1.Pod) { p.ResourceVersion = "2" })) // the API does not show the binding yet
	f.wait(time.Hour)
	f.want("")
	bound := pod("p", "1", onNode(strings.TrimPrefix(placed, "p:")))
	f.add(bound)
	f.Failed(bound.UID, f.now) // the answer to the binding was lost
	f.wait(time.Hour)
	f.want("")
	if at, ok := f.State().PodNode(bound.UID); !ok || "p:"+at != placed {
		t.Errorf("the Pod counts on %q, want %s", at, placed)
	}
	f.add(pod("p", "1")) // an event from before the binding
	f.want("")
}

// SAF-121: what rules read of a Pod changes while its binding is in flight: it is not given a second node. When the
// binding fails, it is judged by what it is by then.
func TestPodChangesWhileItsBindingIsInFlight(t *testing.T) {
	tainted := rulestest.Tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		later  func(*fixture) // nodes that come while the binding is in flight
		want   string
	}{
		"tolerates more": {rulestest.Tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}),
			func(f *fixture) { f.node("tainted", "2", tainted) }, "p:tainted"},
		"selects nodes": {rulestest.Selecting("disk", "ssd"), func(f *fixture) {
			f.node("large", "8")
			f.node("labelled", "2", rulestest.Labelled("disk", "ssd"))
		}, "p:labelled"},
		"is gated": {func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} },
			func(f *fixture) { f.node("large", "8") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("first", "1")
			f.add(pod("p", "1"))
			f.want("p:first")
			test.later(f)
			f.add(pod("p", "1", test.change))
			f.wait(time.Hour)
			f.want("")
			if at, ok := f.State().PodNode("uid-p"); !ok || at != "first" {
				t.Errorf("the Pod counts on %q, want first", at)
			}
			f.RemoveNode("first")
			f.Failed("uid-p", f.now)
			f.wait(time.Second)
			f.want(test.want)
		})
	}
}

// POD-029, SAF-125: a Pod stays where it was bound, also when its node goes before it has started.
func TestBoundPodIsNeverMoved(t *testing.T) {
	f := newFixture(t)
	f.node("a", "1")
	f.add(pod("p", "1"))
	f.want("p:a")
	f.add(pod("p", "1", onNode("a")))
	f.RemoveNode("a")
	f.node("b", "2")
	f.wait(time.Hour)
	f.want("")
	f.add(pod("q", "1", onNode("a"))) // bound before this scheduler began
	f.want("")
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

// A Pod that somebody else bound elsewhere counts there.
func TestBoundElsewhere(t *testing.T) {
	f := newFixture(t)
	f.node("a", "1")
	f.add(pod("p", "1"))
	f.want("p:a")
	f.node("b", "1")
	f.add(pod("p", "1", onNode("b")), pod("q", "1"))
	f.want("q:a")
}

// A Pod that is deleted while its binding is under way gives its room back.
func TestDeletedInFlight(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	p := pod("p", "1")
	f.add(p)
	f.want("p:n")
	f.RemovePod(p)
	f.add(pod("q", "1"))
	f.want("q:n")
	f.Failed(p.UID, f.now)
	f.wait(time.Hour)
	f.want("")
}

// A Pod that is being deleted is not placed any more.
func TestTerminatingPodIsNotPlaced(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	f.add(pod("p", "1"), pod("p", "1", terminating))
	f.want("")
}

// A standby knows the cluster and decides nothing; when it takes over it begins with the oldest Pod of a priority.
func TestLead(t *testing.T) {
	f := newFixture(t)
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	created := func(seconds int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
		}
	}
	f.node("n", "3")
	f.add(pod("young", "1", created(9)), pod("old", "1", created(1)), pod("running", "1", onNode("n")))
	f.want("")
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("old:n young:n")
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	f.Failed("uid-old", f.now)
	f.wait(time.Minute)
	f.want("")
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("old:n")
}

// A standby that takes over tries Pods of one second by their UID, so that two of them would do the same.
func TestLeadOrdersPodsOfOneSecond(t *testing.T) {
	f := newFixture(t)
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	f.node("n", "9")
	f.add(pod("c", "1"), pod("a", "1"), pod("d", "1"), pod("b", "1"))
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("a:n b:n c:n d:n")
	f.add(pod("e", "1"))
	f.Lead(corev1.DefaultSchedulerName, true, f.now) // it leads already
	f.want("e:n")
}

// What a new leader takes up: neither what is gated nor what has its node.
func TestLeadTakesUpWhatWaits(t *testing.T) {
	gate := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }
	f := newFixture(t)
	f.node("n", "9")
	f.add(pod("placed", "1"))
	f.want("placed:n")
	f.Lead(corev1.DefaultSchedulerName, false, f.now)
	f.add(pod("gated", "1", gate), pod("waits", "1"),
		pod("other", "1", func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("waits:n")
}

// The failure of a binding that nobody asked for changes nothing.
func TestFailureOfAPodWithoutANodeIsIgnored(t *testing.T) {
	f := newFixture(t)
	f.add(pod("p", "1"))
	f.want("p:-")
	f.Failed("uid-p", f.now)
	f.Failed("uid-none", f.now)
	if d := f.Depths(); d[queue.Parked].Pods != 1 || d[queue.Backoff].Pods != 0 {
		t.Errorf("depths are %v", d)
	}
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

// A phase or a deletion of a Pod that has its node, and of one that has not.
func TestWhatTakesRoom(t *testing.T) {
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase = phase }
	}
	for name, test := range map[string]struct {
		change []func(*corev1.Pod)
		takes  bool
	}{
		"runs":                      {[]func(*corev1.Pod){onNode("n"), phase(corev1.PodRunning)}, true},
		"is being deleted":          {[]func(*corev1.Pod){onNode("n"), terminating}, true},
		"succeeded":                 {[]func(*corev1.Pod){onNode("n"), phase(corev1.PodSucceeded)}, false},
		"failed":                    {[]func(*corev1.Pod){onNode("n"), phase(corev1.PodFailed)}, false},
		"failed, without a node":    {[]func(*corev1.Pod){phase(corev1.PodFailed)}, false},
		"succeeded, without a node": {[]func(*corev1.Pod){phase(corev1.PodSucceeded)}, false},
		"deleted, without a node":   {[]func(*corev1.Pod){terminating}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("n", "4")
			f.add(pod("p", "1"), pod("p", "1", test.change...))
			f.want("")
			if _, takes := f.State().PodNode("uid-p"); takes != test.takes {
				t.Errorf("takes room: %v, want %v", takes, test.takes)
			}
		})
	}
}

// Two Pods of unlike names wait for one node: each hears of it, and one that leaves does not take the other's place.
func TestPinnedPodsAreWokenByTheirNode(t *testing.T) {
	f := newFixture(t)
	byHost := rulestest.Selecting(corev1.LabelHostname, "n")
	byName := rulestest.Requiring(rulestest.Named(corev1.NodeSelectorOpIn, "n"))
	elsewhere := rulestest.Requiring(rulestest.Named(corev1.NodeSelectorOpIn, "m"))
	f.add(pod("host", "1", byHost), pod("name", "1", byName), pod("goes", "1", byName), pod("else", "1", elsewhere))
	f.want("host:- name:- goes:- else:-")
	f.RemovePod(pod("goes", "1", byName))
	f.wait(time.Minute)
	f.node("x", "1", rulestest.Labelled(corev1.LabelHostname, "n"))
	f.want("host:x")
	f.node("n", "1")
	f.want("name:n")
	f.node("m", "1")
	f.want("else:m")
}

// Each profile is led by itself and judges by its own rules.
func TestProfiles(t *testing.T) {
	profile := config.DefaultProfile()
	profile.Name = "second"
	f := &fixture{t: t, now: start, Cycle: cycle.New(cycle.Config{Profiles: []rules.Profile{config.DefaultProfile(),
		profile}})}
	f.node("n", "4")
	f.add(pod("a", "1"), pod("b", "1", func(p *corev1.Pod) { p.Spec.SchedulerName = "second" }))
	f.want("")
	f.Lead("second", true, f.now)
	f.want("b:n")
	f.Lead(corev1.DefaultSchedulerName, true, f.now)
	f.want("a:n")
}

// SAF-024, SAF-125: a Pod that has its node is left there, whatever better place comes, and whatever the node turns
// into.
func TestBoundPodsAreLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.node("n", "1")
	f.add(pod("a", "1", onNode("n")), pod("b", "1", onNode("n"), withPriority(10)))
	f.node("empty", "64")
	f.want("")
	f.node("n", "1", rulestest.Cordoned, rulestest.Tainted(corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}))
	f.wait(time.Hour)
	f.add(pod("b", "1", onNode("n"), withPriority(10), func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }))
	f.want("")
}
