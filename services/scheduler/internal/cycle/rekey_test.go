package cycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rules"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// newDomainFixture is a Cycle with the rules over domains, leading.
func newDomainFixture(t *testing.T) *fixture {
	c := cycle.New(cycle.Config{Profiles: []rules.Profile{domainProfile(true)}, Seed: 1})
	c.Lead(corev1.DefaultSchedulerName, true, start)
	return &fixture{Cycle: c, t: t, now: start}
}

// indexed returns the i-th of many Pods that differ in one label.
func indexed(i int, change ...func(*corev1.Pod)) *corev1.Pod {
	return pod(fmt.Sprintf("p%04d", i), "1", append(change, rulestest.Labelling("app", "job"),
		rulestest.Labelling("index", fmt.Sprint(i)))...)
}

// Pods that differ in a label that no term selects are one class. Once a term selects by it, the Pods that it selects
// are a class of their own, until no Pod carries the term any more.
func TestPodsThatDifferInALabelThatNobodySelectsAreOneClass(t *testing.T) {
	f := newDomainFixture(t)
	for i := range 1000 {
		f.add(indexed(i))
	}
	if n := f.WaitingClasses(); n != 1 {
		t.Fatalf("1000 Pods that differ in the label index are %d classes, want 1", n)
	}
	f.run() // no node: all are unschedulable
	f.node("n", "0")
	selects := pod("selects", "1", rulestest.AntiAffinity(zone, "index", "7"), onNode("n"))
	f.add(selects)
	f.wait(time.Minute)
	f.run()
	if n := f.WaitingClasses(); n != 2 {
		t.Errorf("they are %d classes when a term selects one of them, want 2", n)
	}
	f.add(indexed(7), indexed(8), indexed(1007)) // seen again, and a new one
	if n := f.WaitingClasses(); n != 2 {
		t.Errorf("they are %d classes when they are seen again, want 2", n)
	}
	f.RemovePod(selects)
	f.run()
	if n := f.WaitingClasses(); n != 1 || f.KnownClasses() != 1 {
		t.Errorf("they are %d classes of %d when the term is gone, want 1", n, f.KnownClasses())
	}
	if d := f.Depths(); d[queue.Unschedulable].Pods != 1001 {
		t.Errorf("%v wait", d)
	}
}

// A Pod that is found to be of another class stays where it is in the queue: it is neither tried sooner nor forgets
// its tries.
func TestRekeyedPodsKeepTheirPlace(t *testing.T) {
	f := newDomainFixture(t)
	f.node("n", "0")
	f.add(indexed(1), indexed(2))
	f.want("p0001:- p0002:-")
	waits := f.Depths()[queue.Unschedulable]
	f.wait(time.Minute)
	f.add(pod("selects", "0", rulestest.AntiAffinity(zone, "index", "1"), onNode("n")))
	f.want("")
	if got := f.Depths()[queue.Unschedulable]; got != waits || f.WaitingClasses() != 2 {
		t.Errorf("%+v wait, want %+v", got, waits)
	}
	f.wait(4 * time.Minute) // the longest time since it was tried
	v, ok := f.Next(f.now)
	if !ok || v.Attempt != 2 {
		t.Errorf("the next try is number %d of %v", v.Attempt, v.Pod)
	}
}

// A Pod that comes may help one that waits, as where it goes with it or evens out a spread; and one that is relabelled.
func TestDomainsRequeue(t *testing.T) {
	inZone := func(value string) func(*corev1.Node) { return rulestest.Labelled(zone, value) }
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		event func(*fixture)
		want  string
	}{
		"the Pod that it goes with comes": {pod("p", "0", rulestest.Affinity(zone, "app", "db")),
			func(f *fixture) { f.add(pod("db", "0", rulestest.Labelling("app", "db"), onNode("a"))) }, "p:a"},
		"one that it does not go with": {pod("p", "0", rulestest.Affinity(zone, "app", "db")),
			func(f *fixture) { f.add(pod("db", "0", rulestest.Labelling("app", "web"), onNode("a"))) }, ""},
		"a Pod becomes the one that it goes with": {pod("p", "0", rulestest.Affinity(zone, "app", "db")),
			func(f *fixture) { f.add(pod("web-a", "0", rulestest.Labelling("app", "db"), onNode("a"))) }, "p:a"},
		"the zone is emptied": {
			pod("p", "0", rulestest.AntiAffinity(zone, "app", "web"), rulestest.Selecting(corev1.LabelHostname, "a")),
			func(f *fixture) { f.RemovePod(pod("web-a", "0")) }, "p:a"},
		"a node of a zone without such a Pod comes": {
			pod("p", "0", rulestest.AntiAffinity(zone, "app", "web")),
			func(f *fixture) { f.node("c", "1", inZone("c")) }, "p:c"},
		"its blocker is deleted": {
			pod("p", "0", rulestest.AntiAffinity(zone, "app", "web")),
			func(f *fixture) { f.RemovePod(pod("web-a", "0")) }, "p:a"},
		"a Pod that keeps it apart goes": {pod("p", "0", rulestest.Labelling("app", "kept")),
			func(f *fixture) { f.RemovePod(pod("keeps-b", "0")) }, "p:b"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newDomainFixture(t)
			f.node("a", "1", inZone("a"))
			f.node("b", "1", inZone("b"))
			f.add(pod("web-a", "0", rulestest.Labelling("app", "web"), onNode("a")),
				pod("web-b", "0", rulestest.Labelling("app", "web"), onNode("b")),
				pod("keeps-a", "0", rulestest.AntiAffinity(zone, "app", "kept"), onNode("a")),
				pod("keeps-b", "0", rulestest.AntiAffinity(zone, "app", "kept"), onNode("b")))
			f.add(test.pod)
			f.want("p:-")
			f.wait(time.Minute)
			f.want("")
			test.event(f)
			f.want(test.want)
		})
	}
}

// A Pod of the emptiest domain raises the least count, which lets Pods into the other domains.
func TestSpreadRequeuesWhenTheLeastGrows(t *testing.T) {
	f := newDomainFixture(t)
	f.node("a", "1", rulestest.Labelled(zone, "a"))
	f.node("b", "1", rulestest.Labelled(zone, "b"))
	web := rulestest.Labelling("app", "web")
	f.add(pod("web-a", "0", web, onNode("a")))
	f.add(pod("p", "0", web, rulestest.Spreading(zone, 1, corev1.DoNotSchedule, "app", "web"),
		rulestest.Requiring(rulestest.Named(corev1.NodeSelectorOpIn, "a"))))
	f.want("p:-")
	f.wait(time.Minute)
	f.add(pod("db-b", "0", onNode("b")))
	f.want("")
	f.add(pod("web-b", "0", web, onNode("b")))
	f.want("p:a")
}
