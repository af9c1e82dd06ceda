package cycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// at makes the Pod ask for one node.
func at(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"at": node} }
}

// evenlyAnywhere spreads the Pod over all zones, those too where it may not go.
func evenlyAnywhere(p *corev1.Pod) {
	ignore := corev1.NodeInclusionPolicyIgnore
	evenly(p)
	p.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy = &ignore
}

// A gang spares the victims that all of it can do without, in the order in which they are spared for one Pod: SCH-038.
func TestGangSparesVictims(t *testing.T) {
	member := func(name, cpu, node string, more ...func(*corev1.Pod)) *corev1.Pod {
		return pod(name, cpu, append(more, high, inGroup("g"), at(node))...)
	}
	two := []*corev1.Pod{member("g0", "1", "a"), member("g1", "1", "a")}
	three := []*corev1.Pod{member("g0", "1", "b"), member("g1", "1", "b"), member("g2", "1", "b")}
	for name, test := range map[string]struct {
		given func(*preempting)
		gang  []*corev1.Pod
		want  string
	}{
		"what the second takes is enough for both": {func(f *preempting) {
			f.running(pod("x", "1", on("a", 0)), pod("y", "2", on("a", 1)))
		}, two, "g0:- g1>a(y)"},
		"no more than that": {func(f *preempting) {
			f.running(pod("x", "1", on("a", 0)), pod("y", "2", on("a", 1)))
		}, []*corev1.Pod{member("g0", "1", "a"), member("g1", "1001m", "a")}, "g0>a(x) g1>a(y)"},
		"the more important": {func(f *preempting) {
			f.running(pod("w", "1", on("b", 0)), pod("x", "1", on("b", 1)), pod("y", "2", on("b", 2)))
		}, three, "g0>b(w) g1:- g2>b(y)"},
		"the one of a budget before the more important": {func(f *preempting) {
			f.budget("w", "w", 0)
			f.budget("y", "y", 0)
			f.running(pod("w", "1", on("b", 0, app("w"))), pod("x", "1", on("b", 1)),
				pod("y", "2", on("b", 2, app("y"))))
		}, three, "g0>b(x) g1:- g2>b(y)"},
		"together those that go together": {func(f *preempting) {
			f.SetPodGroup(gangOf("v", 2, together), f.now)
			f.running(pod("v0", "1", on("a", 0), inGroup("v")), pod("v1", "4", on("b", 0), inGroup("v")),
				pod("y", "2", on("a", 1)))
		}, two, "g0:- g1>a(y)"},
		"none of those that go together if one must go": {func(f *preempting) {
			f.SetPodGroup(gangOf("v", 2, together), f.now)
			f.running(pod("v0", "1", on("a", 0), inGroup("v")), pod("v1", "4", on("b", 0), inGroup("v")),
				pod("y", "2", on("a", 1)))
		}, append(two[:2:2], member("g2", "1", "b")), "g0>a(v0 v1) g1>a(y) g2:-"},
		"one that lets another stay": {func(f *preempting) {
			f.running(pod("w", "1", on("b", 0, labelled("x"))), pod("y", "3", on("b", 1)),
				pod("v", "0", on("a", 5, labelled("x"))))
		}, append(three[:2:2], member("g2", "1", "a", labelled("x"), evenlyAnywhere)), "g0:- g1>b(y) g2:-"},
		"whichever of the Pods came first": {func(f *preempting) {
			f.running(pod("x", "1", on("a", 0)), pod("y", "2", on("a", 1)))
		}, []*corev1.Pod{member("g0", "1", "a", labelled("x"), evenlyAnywhere), member("g1", "1", "a", labelled("x"))},
			"g0:- g1>a(y)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPreempting(t)
			for name, cpu := range map[string]string{"a": "3", "b": "4"} {
				f.node(name, cpu, inZone(name), func(n *corev1.Node) { n.Labels["at"] = name })
			}
			test.given(f)
			f.add(test.gang...)
			f.SetPodGroup(gangOf("g", int32(len(test.gang)), ofPriority(10)), f.now)
			f.want(test.want)
		})
	}
}

// No Pod is evicted for a gang of which one Pod has affinity to a victim of another: without all victims it would not
// fit.
func TestGangNeedsAVictim(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "1", inZone("z"))
	f.node("b", "1", inZone("z"))
	f.running(pod("x", "1", on("a", 0, app("x"))))
	f.SetPodGroup(gangOf("g", 2, ofPriority(10)), f.now)
	f.gang("g", 1, "1", high, besideApp("x"))
	f.add(pod("g1", "1", high, inGroup("g")))
	f.want("g0:- g1:-")
}

// A Pod of a gang that is nominated beside one of higher priority counts on its place, as one alone would: each of them
// has it when those are gone that leave for the other.
func TestGangSharesANode(t *testing.T) {
	f := newPreempting(t)
	f.node("a", "3", func(n *corev1.Node) { n.Labels["at"] = "a" })
	f.node("b", "1", func(n *corev1.Node) { n.Labels["at"] = "b" })
	nominated := func(p *corev1.Pod) { p.Status.NominatedNodeName = "a" }
	f.running(leaving(pod("leaves", "2", on("a", 10))), pod("w", "1", on("b", 0)))
	f.add(pod("top", "2", withPriority(20), nominated), pod("g0", "1", high, inGroup("g"), at("a"), nominated),
		pod("g1", "1", high, inGroup("g"), at("b")))
	f.SetPodGroup(gangOf("g", 2, ofPriority(10)), f.now)
	f.want("top:- g0:- g1>b(w)")
	if got := f.Nominated("uid-g0"); got != "a" {
		t.Errorf("room is kept on %q", got)
	}
}
