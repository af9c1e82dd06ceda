package cycle_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/services/scheduler/internal/extender"
)

// newGangExtended is newExtended with an extender that has no say on preemption.
func newGangExtended(t *testing.T) *preempting { return newOf(t, withExtender(t, "")) }

// The Cycle asks extenders about each Pod of a gang, one after the other, while others go on; then it decides on all of
// the gang.
func TestExtendersHaveASayOnGangs(t *testing.T) {
	f := newGangExtended(t)
	f.node("a", "4")
	f.node("b", "4")
	f.node("c", "4")
	f.SetPodGroup(gangOf("g", 2), f.now)
	f.gang("g", 2, "1", withGPU)
	before := columnsOf(f.State())
	q := f.question("g0", "a b c")
	f.add(pod("gpu", "1", withGPU), pod("plain", "1"))
	if got := f.asks("plain:b"); len(got) != 0 {
		t.Fatalf("asks %v beside", got)
	}
	f.RemovePod(pod("plain", "1"))
	if got := f.answered(q, extender.Answer{Left: []string{"a", "b"},
		Scores: map[string]int64{"a": 1000}}); got != "none" {
		t.Fatalf("after the first answer: %s", got)
	}
	q = f.question("g1", "a b c")
	if after := columnsOf(f.State()); after != before {
		t.Errorf("while it is asked the columns are\n%s\nand were\n%s", after, before)
	}
	f.answered(q, left("c"))
	if got := f.asks("g0:a g1:c"); len(got) != 1 || got[0].Pod.Name != "gpu" {
		t.Errorf("asks %v afterwards", got)
	}
	f.counted()
}

// A gang gets no node if an extender refuses all nodes for one of its Pods. It says why, and the extender is asked
// again after the delay.
func TestExtenderRefusesAGang(t *testing.T) {
	for name, test := range map[string]struct {
		second extender.Answer
		want   string
		reason string
	}{
		"a Pod of it": {extender.Answer{Failed: map[string]string{"a": "no gpu"}}, "0/1 nodes are available: 1 no gpu.",
			corev1.PodReasonUnschedulable},
		"by failing": {extender.Answer{Err: errors.New("it hangs")}, "it hangs", corev1.PodReasonSchedulerError},
	} {
		t.Run(name, func(t *testing.T) {
			f := newGangExtended(t)
			f.node("a", "4")
			f.SetPodGroup(gangOf("g", 3), f.now)
			f.gang("g", 3, "1", withGPU)
			before := columnsOf(f.State())
			f.answered(f.question("g0", "a"), left("a"))
			f.answered(f.question("g1", "a"), test.second)
			if test.second.Err == nil {
				f.answered(f.question("g2", "a"), left("a"))
			}
			if got := f.asks("g0: g1: g2:"); len(got) != 0 || columnsOf(f.State()) != before {
				t.Errorf("asks %v, and leaves\n%s", got, columnsOf(f.State()))
			}
			_, condition, _ := f.Unschedulable("uid-g1")
			if condition.Reason != test.reason || !strings.Contains(condition.Message, test.want) {
				t.Errorf("it says %s %q", condition.Reason, condition.Message)
			}
			f.wait(time.Second)
			f.answered(f.question("g0", "a"), left("a")) // what it said before does not count
			f.answered(f.question("g1", "a"), left("a"))
			f.answered(f.question("g2", "a"), left("a"))
			f.asks("g0:a g1:a g2:a")
		})
	}
}

// What happens to a gang while an extender is asked about one of its Pods.
func TestWhileExtendersAreAskedAboutAGang(t *testing.T) {
	member := func(name, cpu string) *corev1.Pod { return pod(name, cpu, withGPU, inGroup("g")) }
	for name, test := range map[string]struct {
		happens func(*preempting)
		next    string // the Pod that is asked about next
		want    string
	}{
		"nothing":         {func(*preempting) {}, "g1", "g0:a g1:a"},
		"the Pod is gone": {func(f *preempting) { f.RemovePod(member("g0", "1")) }, "", ""},
		"another takes place": {func(f *preempting) { f.RemovePod(member("g0", "1")); f.add(member("g9", "1")) }, "g1",
			"g1:a g9:a"},
		"the Pod changes":  {func(f *preempting) { f.add(member("g0", "2")) }, "g0", "g0:a g1:a"},
		"a Pod comes":      {func(f *preempting) { f.add(member("g2", "1")) }, "g1", "g0:a g1:a g2:a"},
		"the lead is lost": {func(f *preempting) { f.Lead(corev1.DefaultSchedulerName, false, f.now) }, "", ""},
		"the lead is back": {func(f *preempting) {
			f.Lead(corev1.DefaultSchedulerName, false, f.now)
			f.Lead(corev1.DefaultSchedulerName, true, f.now)
		}, "g1", "g0:a g1:a"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newGangExtended(t)
			f.node("a", "8")
			f.SetPodGroup(gangOf("g", 2), f.now)
			f.gang("g", 2, "1", withGPU)
			q := f.question("g0", "a")
			test.happens(f)
			if got := f.asks(""); len(got) != 0 {
				t.Fatalf("asks %v beside", got)
			}
			f.answered(q, left("a"))
			if test.next == "" {
				if got := f.asks(""); len(got) != 0 {
					t.Errorf("asks %v", got)
				}
				return
			}
			q = f.question(test.next, "a")
			for f.answered(q, left("a")); ; f.answered(q, left("a")) {
				var tries []string
				q = nil
				for v, ok := f.Next(f.now); ok; v, ok = f.Next(f.now) {
					if q = v.Question; q == nil {
						tries = append(tries, v.Pod.Name+":"+v.Node)
					}
				}
				if q == nil {
					if got := strings.Join(tries, " "); got != test.want {
						t.Errorf("tried %q, want %q", got, test.want)
					}
					return
				}
			}
		})
	}
}

// A gang preempts though an extender has a say on its Pods, but not where it has one on preemption.
func TestGangWithExtenderPreempts(t *testing.T) {
	for want, f := range map[string]*preempting{"a": newGangExtended(t),
		"": newExtended(t, []schedulerv1.Extender{}...)} {
		f.node("a", "1")
		f.running(pod("x", "1", onNode("a")))
		f.SetPodGroup(gangOf("g", 1, ofPriority(10)), f.now)
		f.gang("g", 1, "1", high, withGPU)
		v, _ := f.Next(f.now)
		if v.Question != nil || v.Nominated != want || (want == "") != strings.HasSuffix(v.Message(),
			"not eligible due to an extender with preemptVerb, which is asked about pods alone.") {
			t.Errorf("room is kept on %q, want %q: %s", v.Nominated, want, v.Message())
		}
	}
}
