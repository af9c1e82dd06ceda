package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// heldAndUnanswered holds each binding between its decision and the request, while a file exists, and loses the answer.
func heldAndUnanswered(file string) string {
	return "scheduler/bind.before=hold(" + file + ");scheduler/bind.after=error(lost)"
}

// TestChangesBeforeBinding changes the world between a decision and its binding, whose answer is lost too: the
// node goes, the Pod is created again, or changes. No Pod is on a node that is gone, none has a second node, no node
// has more than it has room for, and no room is kept for what is not there.
//
// SAF-121 POD-025
func TestChangesBeforeBinding(t *testing.T) {
	m := processes.Shared(t, 0)
	s := bare(t, m)
	m.Kill(t, mesh.Scheduler)
	giveUp(s.World, mesh.Scheduler)
	held := filepath.Join(t.TempDir(), "held")
	hold, release := func() { must(t, os.WriteFile(held, nil, 0o600)) }, func() { must(t, os.Remove(held)) }
	scheduler := m.StartArmed(t, mesh.Scheduler, heldAndUnanswered(held))
	seen := s.watchRoom(1)
	given := func(pod, node string) {
		s.Await(pod+" to be given "+node, func() scenario.Answer {
			said, err := m.Keel(t.Context(), "explain", "-n", s.Namespace, "pod", pod)
			if err != nil || !strings.Contains(said, "given node "+node+",") {
				return scenario.Saw(fmt.Sprint(said, err))
			}
			return ""
		})
	}
	expectNode := func(pod, node string) {
		if got := s.bound(pod); got != node {
			t.Errorf("%s is on %s, want %s", pod, got, node)
		}
	}

	s.node("vanishes", "1", nil)
	hold()
	s.run("moves", "1", "", 0)
	given("moves", "vanishes")
	if err := s.Client.CoreV1().Nodes().Delete(t.Context(), "vanishes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.node("first", "1", nil)
	release()
	expectNode("moves", "first")

	s.node("second", "1", nil)
	hold()
	s.run("again", "1", "", 0)
	given("again", "second")
	s.end("again")
	s.run("again", "1", "", 0, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
	s.node("labelled", "1", map[string]string{"disk": "ssd"})
	release()
	expectNode("again", "labelled") // the binding of the old Pod of its name comes before its own

	hold()
	s.run("changes", "1", "", 0)
	given("changes", "second")
	if _, err := s.Client.CoreV1().Pods(s.Namespace).Patch(t.Context(), "changes", types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"new": "label"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.run("waits", "1", "", 0)
	release()
	expectNode("changes", "second")
	seen.awaitBound(3)
	if node := s.pod("waits").Spec.NodeName; node != "" {
		t.Errorf("waits is on %s, which is full", node)
	}
	for _, name := range seen.some(1) {
		s.end(name)
	}
	seen.awaitBound(3)
	s.bound("waits")
	if !scheduler.Alive() {
		t.Error("the scheduler has ended")
	}
}

// TestPreemptionThroughSchedulerCrashes ends the scheduler between the writes of a preemption. Started again it takes
// the room of those Pods that it chose before, and of no others: neither of the more important one that it spared, nor
// of one of equal priority.
//
// SAF-121 SCH-041
func TestPreemptionThroughSchedulerCrashes(t *testing.T) {
	m := processes.Shared(t, 0)
	s := bare(t, m)
	for i, failpoint := range []string{"status.after", "victim.status.after", "victim.delete.before",
		"victim.delete.after"} {
		node, urgent := fmt.Sprint("n", i), fmt.Sprint("urgent", i)
		low := []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
		s.node(node, "4", nil)
		for name, priority := range map[string]int32{low[0]: 0, low[1]: 0, fmt.Sprint("spared", i): 10,
			fmt.Sprint("equal", i): 1000} {
			s.run(name, "1", "", priority)
			s.bound(name)
		}
		asked := false
		die(s.World, m, mesh.Scheduler, "scheduler/"+failpoint+"=crash", func() string {
			if !asked {
				s.run(urgent, "2", "", 1000)
			}
			asked = true
			return ""
		})
		s.Await(fmt.Sprint(low, " to be evicted"), func() scenario.Answer { // no other is while one leaves
			low = slices.DeleteFunc(low, func(name string) bool {
				p := s.pod(name)
				evicted := p.DeletionTimestamp != nil && preempted(p)
				if evicted {
					s.end(name)
				}
				return evicted
			})
			if len(low) > 0 {
				return scenario.Sawf("%v are not", low)
			}
			return ""
		})
		if got := s.bound(urgent); got != node {
			t.Errorf("after a crash at %s %s is on %s, want %s", failpoint, urgent, got, node)
		}
		pods, err := s.Client.CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.DeletionTimestamp != nil || preempted(p) {
				t.Errorf("after a crash at %s %s goes too", failpoint, p.Name)
			}
		}
	}
}

func preempted(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
			c.Reason == corev1.PodReasonPreemptionByScheduler {
			return true
		}
	}
	return false
}
