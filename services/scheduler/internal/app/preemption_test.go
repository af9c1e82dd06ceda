package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
)

// ranked stores a Pod of a priority, on a node if there is one.
func (s *stage) ranked(name, cpu string, priority int32, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Priority: &priority, NodeName: node,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}},
	})
}

// condition returns a condition of a Pod; one without a type when it has none.
func (s *stage) condition(name string, of corev1.PodConditionType) corev1.PodCondition {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.pods[name].Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return corev1.PodCondition{}
}

const (
	full      = "0/1 nodes are available: 1 Insufficient cpu."
	preempted = "default-scheduler: preempting to accommodate a higher priority pod"
)

// SCH-035, SCH-041, SCH-042, SCH-044, SCH-049, SAF-066, SAF-159: the Pod is nominated, then the victim is marked and
// deleted with its own grace period, and says why; when it is gone the Pod is bound.
func TestPreemption(t *testing.T) {
	play(t, func(s *stage) {
		s.node("n", "4")
		s.ranked("victim", "4", 0, "n")
		s.ranked("p", "4", 10, "")
		s.want("status p: "+full+" -> n", "status victim: "+preempted, "delete victim")
		s.wantEvents("Warning FailedScheduling p: "+full,
			"Normal Preempted victim: Preempted by pod uid-p on node n")
		if c := s.condition("victim", corev1.DisruptionTarget); c.Status != corev1.ConditionTrue ||
			c.Reason != "PreemptionByScheduler" || c.LastTransitionTime.IsZero() {
			t.Errorf("the victim is marked %+v", c)
		}
		s.wait(30 * time.Second)
		s.want()
		s.wantEvents()
		s.end("victim")
		s.want("bind p to n")
	})
}

// A lost answer changes nothing: neither of the nomination, nor of the mark, nor of the deletion.
func TestPreemptionWithLostAnswers(t *testing.T) {
	want := []string{"status p: " + full + " -> n", "status victim: " + preempted, "delete victim"}
	for _, place := range []string{"scheduler/status.after", "scheduler/victim.status.after",
		"scheduler/victim.delete.after", "scheduler/victim.delete.before"} {
		t.Run(place, func(t *testing.T) {
			play(t, func(s *stage) {
				if err := failpoint.Arm(place, "1*error(lost)"); err != nil {
					t.Fatal(err)
				}
				defer failpoint.Disarm(place)
				s.node("n", "4")
				s.ranked("victim", "4", 0, "n")
				s.ranked("p", "4", 10, "")
				s.wait(20 * time.Second)
				s.want(want...)
				s.end("victim")
				s.want("bind p to n")
			})
		})
	}
}

// A victim that has changed since the decision is evicted as it is now. One that has ended stays as it is, and one that
// is another Pod by now is left alone. Only an evicted victim gets an event that it was preempted: SCH-042.
func TestVictimChangesMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"its status": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning },
			[]string{"status victim: " + preempted, "delete victim"}},
		"it ended":                {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, nil},
		"it is deleted":           {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, nil},
		"another Pod of its name": {func(p *corev1.Pod) { p.UID = "another" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.node("n", "4")
				s.ranked("victim", "4", 0, "n")
				synctest.Wait()
				s.mu.Lock()
				now := s.pods["victim"].DeepCopy()
				now.ResourceVersion = "newer" // which the watch does not show yet
				test.change(now)
				s.pods["victim"] = now
				s.mu.Unlock()
				s.ranked("p", "4", 10, "")
				s.wait(5 * time.Second)
				s.want(append([]string{"status p: " + full + " -> n"}, test.want...)...)
				if told := s.toldOf("victim"); told != (len(test.want) > 0) {
					t.Errorf("an event says that the victim was preempted: %v, it is evicted: %v", told, !told)
				}
			})
		})
	}
}

// toldOf reports whether an event says that the Pod was preempted.
func (s *stage) toldOf(pod string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.events, func(e string) bool { return strings.Contains(e, " Preempted "+pod+":") })
}

// SCH-042: each of several victims has an event, and no Pod that stays.
func TestEachVictimHasAnEvent(t *testing.T) {
	play(t, func(s *stage) {
		s.node("n", "4")
		s.ranked("stays", "1", 10, "n")
		s.ranked("a", "1", 0, "n")
		s.ranked("b", "2", 0, "n")
		s.ranked("p", "3", 10, "")
		s.wait(5 * time.Second)
		for pod, want := range map[string]bool{"a": true, "b": true, "stays": false, "p": false} {
			if got := s.toldOf(pod); got != want {
				t.Errorf("an event says that %s was preempted: %v, want %v", pod, got, want)
			}
		}
	})
}

// A nomination that the API refuses costs no Pod anything; the Pod is tried again.
func TestRefusedNomination(t *testing.T) {
	play(t, func(s *stage) {
		if err := failpoint.Arm("scheduler/status.before", "1*error(no)"); err != nil {
			t.Fatal(err)
		}
		defer failpoint.Disarm("scheduler/status.before")
		s.node("n", "4")
		s.ranked("victim", "4", 0, "n")
		s.ranked("p", "4", 10, "")
		s.wait(999 * time.Millisecond)
		s.want()
		s.wait(time.Millisecond)
		s.want("status p: "+full+" -> n", "status victim: "+preempted, "delete victim")
	})
}

// A nomination that is not right any more is taken back.
func TestNominationIsTakenBack(t *testing.T) {
	play(t, func(s *stage) {
		s.node("n", "4")
		s.ranked("victim", "4", 0, "n")
		s.ranked("p", "4", 10, "")
		s.want("status p: "+full+" -> n", "status victim: "+preempted, "delete victim")
		s.ranked("h", "4", 20, "")
		s.wantInAnyOrder("status h: "+full+" -> n", "status p: "+full+
			" preemption: "+full)
		if got := s.pods["p"].Status.NominatedNodeName; got != "" {
			t.Errorf("p is nominated for %q", got)
		}
	})
}

// A process that no longer leads evicts no Pod, and its successor takes over the nominations.
func TestEvictionEndsWithTheLead(t *testing.T) {
	play(t, func(s *stage) {
		s.node("n", "4")
		s.ranked("victim", "4", 0, "n")
		if err := s.loop.ask(context.Background(), func() {
			s.loop.cycle.Lead(corev1.DefaultSchedulerName, false, time.Now())
		}); err != nil {
			t.Fatal(err)
		}
		s.ranked("p", "4", 10, "")
		s.want()
		if err := s.loop.ask(context.Background(), func() {
			s.loop.cycle.Lead(corev1.DefaultSchedulerName, true, time.Now())
		}); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		s.want("status p: "+full+" -> n", "status victim: "+preempted, "delete victim")
	})
}
