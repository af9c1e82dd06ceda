package daemonset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestRollingUpdate(t *testing.T) {
	olds := []*corev1.Pod{newPod("a", "n1", "agent:1"), newPod("b", "n2", "agent:1"), newPod("c", "n3", "agent:1")}
	for _, c := range []struct {
		name  string
		set   *appsv1.DaemonSet
		nodes []verdict // three that run without
		pods  []*corev1.Pod
		want  string
	}{
		{name: "SET-156 one at a time by default", pods: olds, want: "-a Outdated"},
		{name: "as many as may be unavailable", set: newSet(rolling("0", "2")), pods: olds,
			want: "-a Outdated, -b Outdated"},
		{name: "a share is rounded up", set: newSet(rolling("0", "34%")), pods: olds, want: "-a Outdated, -b Outdated"},
		{name: "up to there", set: newSet(rolling("0", "33%")), pods: olds, want: "-a Outdated"},
		{name: "all of them", set: newSet(rolling("0", "100%")), pods: olds,
			want: "-a Outdated, -b Outdated, -c Outdated"},
		{name: "a share of the nodes that run, not of those that keep", set: newSet(rolling("0", "50%")),
			nodes: []verdict{runs, runs, keeps}, pods: olds, want: "-a Outdated"},
		{name: "none while a new Pod is not available", pods: []*corev1.Pod{newPod("a", "n1", "agent:2", unready),
			olds[1], olds[2]}},
		{name: "none while one is missing", pods: []*corev1.Pod{olds[1], olds[2]}, want: "+n1"},
		{name: "none while one is on its way out", pods: []*corev1.Pod{newPod("a", "n1", "agent:1", leaving), olds[1],
			olds[2]}},
		{name: "the next one when the first is available", pods: []*corev1.Pod{newPod("a", "n1", "agent:2"), olds[1],
			olds[2]}, want: "-b Outdated"},
		{name: "one short of minReadySeconds", set: newSet(minReady(10)), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", readyFor(9*time.Second)), olds[1], olds[2]}},
		{name: "after minReadySeconds", set: newSet(minReady(10)), pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", readyFor(10*time.Second)), olds[1], olds[2]}, want: "-b Outdated"},
		{name: "an old Pod that does not serve goes at once, and counts", pods: []*corev1.Pod{olds[0],
			newPod("b", "n2", "agent:1", unready), olds[2]}, want: "-b Outdated"},
		{name: "however many they are", pods: []*corev1.Pod{newPod("a", "n1", "agent:1", unready),
			newPod("b", "n2", "agent:1", unbound), olds[2]}, want: "-a Outdated, -b Outdated"},
		{name: "a failed Pod of a node that waits counts as missing", pods: []*corev1.Pod{
			newPod("a", "n1", "agent:2", ended(corev1.PodFailed)), olds[1], olds[2]}, want: "-a Recreated"},
		{name: "nothing to do when all are new", pods: []*corev1.Pod{newPod("a", "n1", "agent:2"),
			newPod("b", "n2", "agent:2"), newPod("c", "n3", "agent:2")}},
		{name: "SET-156 OnDelete ends nothing", set: newSet(onDelete), pods: olds},
		{name: "SET-156 and makes Pods of the new template", set: newSet(onDelete), pods: olds[1:], want: "+n1"},
		{name: "a strategy without bounds is the default", set: newSet(func(set *appsv1.DaemonSet) {
			set.Spec.UpdateStrategy.RollingUpdate = nil
		}), pods: olds, want: "-a Outdated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.set == nil {
				c.set = newSet()
			}
			if c.nodes == nil {
				c.nodes = alike(runs, 3)
			}
			if got := text(decide(t, inputOf(c.set, c.nodes, c.pods...))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestSurge(t *testing.T) {
	olds := []*corev1.Pod{newPod("a", "n1", "agent:1"), newPod("b", "n2", "agent:1"), newPod("c", "n3", "agent:1")}
	next := func(node string, changes ...func(*corev1.Pod)) *corev1.Pod {
		return newPod("new-"+node, node, "agent:2", append(changes, younger)...)
	}
	one := rolling("1", "0")
	for _, c := range []struct {
		name  string
		set   *appsv1.DaemonSet
		nodes []verdict // three that run without
		pods  []*corev1.Pod
		want  string
	}{
		{name: "SET-156 one second Pod at a time", pods: olds, want: "+n1"},
		{name: "as many as the bound", set: newSet(rolling("2", "0")), pods: olds, want: "+n1, +n2"},
		{name: "a share is rounded up", set: newSet(rolling("34%", "0")), pods: olds, want: "+n1, +n2"},
		{name: "up to there", set: newSet(rolling("33%", "0")), pods: olds, want: "+n1"},
		{name: "the old one stays until the new one is available", pods: append([]*corev1.Pod{next("n1", unready)},
			olds...)},
		{name: "and goes then, and the next node has its turn", pods: append([]*corev1.Pod{next("n1")}, olds...),
			want: "+n2, -a Outdated"},
		{name: "one short of minReadySeconds", set: newSet(one, minReady(10)), pods: append([]*corev1.Pod{
			next("n1", readyFor(9*time.Second))}, olds...)},
		{name: "after minReadySeconds", set: newSet(one, minReady(10)), pods: append([]*corev1.Pod{
			next("n1", readyFor(10*time.Second))}, olds...), want: "+n2, -a Outdated"},
		{name: "an old Pod that does not serve gets a second one beyond the bound", pods: []*corev1.Pod{olds[0],
			newPod("b", "n2", "agent:1", unready), next("n3", unready), olds[2]}, want: "+n2"},
		{name: "and goes when it is there", pods: []*corev1.Pod{newPod("a", "n1", "agent:1", unready), olds[1],
			next("n1", unready)}, want: "+n3, +n2, -a Outdated"},
		{name: "one of two old ones goes before there is a new one", pods: []*corev1.Pod{newPod("a", "n1", "agent:1",
			unready), newPod("c", "n1", "agent:1", unready), olds[1], olds[2]}, want: "-c ScaledDown"},
		{name: "a second one that failed is not made anew beside it", pods: append([]*corev1.Pod{
			next("n1", ended(corev1.PodFailed))}, olds...), want: "-new-n1 Recreated"},
		{name: "a node that gets no new Pods ends the old one", nodes: []verdict{keeps, runs, runs}, pods: olds,
			want: "+n2, -a Outdated"},
		{name: "nothing to do when all are new", pods: []*corev1.Pod{next("n1"), next("n2"), next("n3")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.set == nil {
				c.set = newSet(one)
			}
			if c.nodes == nil {
				c.nodes = alike(runs, 3)
			}
			if got := text(decide(t, inputOf(c.set, c.nodes, c.pods...))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// SET-155: a Pod of a revision that remembers the same template is up to date, whatever the revision is called.
func TestTwinRevisionsAreUpToDate(t *testing.T) {
	twin := revisionOf("agent:2", 3)
	twin.Name, twin.UID, twin.Labels["controller-revision-hash"] = "agent-twin", "twin", "twin"
	in := inputOf(newSet(), alike(runs, 2), newPod("a", "n1", "agent:2"), newPod("b", "n2", "agent:2",
		func(pod *corev1.Pod) { pod.Labels["controller-revision-hash"] = "twin" }))
	in.Revisions = append(in.Revisions, twin)
	if plan := decide(t, in); text(plan) != "" || plan.Status.UpdatedNumberScheduled != 2 {
		t.Errorf("%q, %d are updated", text(plan), plan.Status.UpdatedNumberScheduled)
	}
}

// The number of the template says nothing: another DaemonSet may have left Pods with the same number.
func TestTheGenerationLabelProvesNothing(t *testing.T) {
	in := inputOf(newSet(), alike(runs, 1), newPod("a", "n1", "agent:1", func(pod *corev1.Pod) {
		pod.Labels["pod-template-generation"] = "2"
	}))
	if got := text(decide(t, in)); got != "-a Outdated" { // SET-155
		t.Errorf("%q, want the Pod of another template to go", got)
	}
}
