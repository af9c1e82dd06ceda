package cycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rulestest"
)

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

// SCH-032, DEP-155, POD-046, SAF-062: what helps an unschedulable Pod requeues it, and nothing else does.
func TestWhatRequeues(t *testing.T) {
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

// An event requeues as many of the unschedulable Pods of one class as get a node, the most urgent first. SCH-032
func TestRequeuesAsManyAsFit(t *testing.T) {
	f := newFixture(t)
	for i := range 200 {
		f.add(pod(fmt.Sprintf("p%03d", i), "1", withPriority(int32(i%2))))
	}
	f.run()
	f.wait(time.Minute)
	f.node("n", "3")
	f.want("p001:n p003:n p005:n")
	if d := f.Depths(); d[queue.Unschedulable].Pods != 197 || d[queue.Active].Pods+d[queue.Backoff].Pods != 0 {
		t.Errorf("the rest is %v", d)
	}
}

// A Pod that was requeued and goes away before its turn leaves the room to the next of its class, also where the two
// are confined to one node by its name.
func TestRequeuedPodThatGoesLeavesTheRoom(t *testing.T) {
	for name, where := range map[string]func(*corev1.Pod){
		"anywhere": func(*corev1.Pod) {}, "pinned": rulestest.Selecting(corev1.LabelHostname, "n"),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			first, second := pod("first", "1", where, withPriority(1)), pod("second", "1", where, withPriority(1))
			f.add(first, second)
			f.want("first:- second:-")
			f.wait(time.Minute)
			f.node("n", "1")
			f.add(pod("small", "0", withPriority(9)))
			if v, ok := f.Next(f.now); !ok || v.Pod.Name != "small" { // requeues first, decides small
				t.Fatalf("tried %v", v.Pod)
			}
			f.RemovePod(first)
			f.want("second:n")
		})
	}
}

// Two Pods of unlike names wait for one node: each hears of it, and one that leaves does not take the other's place.
func TestPinnedPodsAreRequeuedByTheirNode(t *testing.T) {
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
