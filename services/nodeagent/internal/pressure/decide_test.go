package pressure

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var begin = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// node keeps the state of a node between passes.
type node struct {
	rules Rules
	state State
}

// pass decides at a time with what is left of signals, each of a capacity of 1000, and returns the action and the
// node's conditions.
func (n *node) pass(after time.Duration, left map[Signal]int64) string {
	levels := map[Signal]Level{}
	for signal, available := range left {
		levels[signal] = Level{Available: available, Capacity: 1000}
	}
	now := begin.Add(after)
	v := Decide(Input{Now: now, Rules: n.rules, State: n.state, Levels: levels})
	n.state = v.State
	out := []string{}
	if v.Relieve != nil {
		out = append(out, "relieve "+v.Relieve.text())
	}
	for _, c := range n.state.Conditions(n.rules.Transition, now) {
		out = append(out, string(c))
	}
	return strings.Join(out, ", ")
}

// A threshold is crossed by a level below it, not at it, and each signal has its condition.
func TestThresholds(t *testing.T) {
	for _, r := range []struct {
		flag string
		left int64
		want string
	}{
		{"memory.available<100", 101, ""}, {"memory.available<100", 100, ""},
		{"memory.available<100", 99, "relieve memory.available<100, MemoryPressure"},
		{"nodefs.available<10%", 100, ""},
		{"nodefs.available<10%", 99, "relieve nodefs.available<10%, DiskPressure"},
		{"nodefs.inodesFree<5%", 50, ""},
		{"nodefs.inodesFree<5%", 49, "relieve nodefs.inodesFree<5%, DiskPressure"},
		{"imagefs.available<15%", 150, ""},
		{"imagefs.available<15%", 149, "relieve imagefs.available<15%, DiskPressure"},
		{"imagefs.inodesFree<5%", 49, "relieve imagefs.inodesFree<5%, DiskPressure"},
		{"pid.available<7", 7, ""}, {"pid.available<7", 6, "relieve pid.available<7, PIDPressure"},
		{"pid.available<7", 0, "relieve pid.available<7, PIDPressure"},
	} {
		n := node{rules: rulesOf(t, "--eviction-hard="+r.flag)}
		signal, _, _ := strings.Cut(r.flag, "<")
		if got := n.pass(0, map[Signal]int64{Signal(signal): r.left}); got != r.want {
			t.Errorf("%s with %d of 1000 left: %q, want %q", r.flag, r.left, got, r.want)
		}
	}
}

// A soft threshold sets the condition at once, and acts only after its grace period without interruption. The level
// must exceed the threshold by the minimum reclaim, and the condition stays for five minutes after its last cause.
func TestSoftMinimumAndTransition(t *testing.T) {
	n := node{rules: rulesOf(t, "--eviction-hard=", "--eviction-soft=memory.available<100",
		"--eviction-soft-grace-period=memory.available=90s", "--eviction-minimum-reclaim=memory.available=50")}
	const relieve = "relieve memory.available<100 for 1m30s +50, MemoryPressure"
	for _, r := range []struct {
		after time.Duration
		left  int64
		want  string
	}{
		{0, 100, ""}, {10 * time.Second, 99, "MemoryPressure"},
		{20 * time.Second, 100, "MemoryPressure"}, // an interruption: the period starts again
		{30 * time.Second, 99, "MemoryPressure"},
		{120*time.Second - 1, 99, "MemoryPressure"},
		{120 * time.Second, 99, relieve},
		{130 * time.Second, 149, relieve}, // above the threshold, not by the minimum
		{140 * time.Second, 150, "MemoryPressure"},
		{150 * time.Second, 120, "MemoryPressure"}, // relieved before: not crossed again
		{430*time.Second - 1, 120, "MemoryPressure"},
		{430 * time.Second, 120, ""},
		{440 * time.Second, 99, "MemoryPressure"},
	} {
		if got := n.pass(r.after, map[Signal]int64{MemoryAvailable: r.left}); got != r.want {
			t.Errorf("after %v with %d left: %q, want %q", r.after, r.left, got, r.want)
		}
	}
}

// A signal that cannot be read neither crosses a threshold nor relieves it: the grace period runs on, and no Pod is
// evicted for an unknown level.
func TestUnreadableSignal(t *testing.T) {
	n := node{rules: rulesOf(t, "--eviction-hard=", "--eviction-soft=memory.available<100",
		"--eviction-soft-grace-period=memory.available=20s")}
	short, unknown := map[Signal]int64{MemoryAvailable: 99}, map[Signal]int64{}
	for i, r := range []struct {
		left map[Signal]int64
		want string
	}{
		{short, "MemoryPressure"}, {unknown, "MemoryPressure"},
		{short, "relieve memory.available<100 for 20s, MemoryPressure"}, {unknown, "MemoryPressure"},
		{short, "relieve memory.available<100 for 20s, MemoryPressure"},
	} {
		if got := n.pass(time.Duration(i)*10*time.Second, r.left); got != r.want {
			t.Errorf("pass %d: %q, want %q", i, got, r.want)
		}
	}
}

// Of several thresholds memory comes first, and the memory of Pods has the same threshold as the node's.
func TestUrgency(t *testing.T) {
	n := node{rules: rulesOf(t, "--eviction-hard=nodefs.available<10%,memory.available<100,pid.available<7").HoldPods()}
	all := map[Signal]int64{NodeFsAvailable: 0, MemoryAvailable: 500, AllocatableMemory: 99, PIDAvailable: 0}
	const conditions = "DiskPressure, MemoryPressure, PIDPressure"
	if got, want := n.pass(0, all), "relieve allocatableMemory.available<100, "+conditions; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	all[AllocatableMemory] = 100
	if got, want := n.pass(time.Second, all), "relieve nodefs.available<10%, "+conditions; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	n = node{rules: rulesOf(t, "--eviction-hard=nodefs.available<10%", "--eviction-soft=memory.available<100",
		"--eviction-soft-grace-period=memory.available=0s")}
	want := "relieve memory.available<100 for 0s, DiskPressure, MemoryPressure"
	if got := n.pass(0, map[Signal]int64{NodeFsAvailable: 0, MemoryAvailable: 99}); got != want {
		t.Errorf("a soft threshold of memory and a hard one of the disk: %q, want %q", got, want)
	}
	if got := rulesOf(t, "--eviction-hard=pid.available<7").HoldPods().Thresholds; len(got) != 1 {
		t.Errorf("without a threshold of memory there is one of what Pods have: %v", got)
	}
}

// An agent that starts keeps an earlier agent's conditions for the transition period, and nothing else.
func TestResume(t *testing.T) {
	state := State{}.Resume([]corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, begin)
	for after, want := range map[time.Duration]string{0: "[DiskPressure]", 5*time.Minute - 1: "[DiskPressure]",
		5 * time.Minute: "[]"} {
		if got := fmt.Sprint(state.Conditions(5*time.Minute, begin.Add(after))); got != want {
			t.Errorf("after %v: %s, want %s", after, got, want)
		}
	}
}

// Without a transition period a condition ends with its cause.
func TestNoTransition(t *testing.T) {
	n := node{rules: rulesOf(t, "--eviction-hard=pid.available<7", "--eviction-pressure-transition-period=0s")}
	for after, r := range []struct {
		left int64
		want string
	}{{6, "relieve pid.available<7, PIDPressure"}, {7, ""}} {
		if got := n.pass(time.Duration(after)*time.Second, map[Signal]int64{PIDAvailable: r.left}); got != r.want {
			t.Errorf("%d left: %q, want %q", r.left, got, r.want)
		}
	}
}

// Dead containers and unused images are removed first, if they are on the file system that is short.
func TestSteps(t *testing.T) {
	const both = "[remove containers that have ended remove images that nothing uses]"
	for signal, want := range map[Signal][2]string{
		NodeFsAvailable: {both, "[]"}, NodeFsInodesFree: {both, "[]"}, ImageFsAvailable: {both, both},
		ImageFsInodesFree: {both, both}, MemoryAvailable: {"[]", "[]"}, PIDAvailable: {"[]", "[]"},
	} {
		for i, apart := range []bool{false, true} {
			if got := fmt.Sprint(signal.Steps(apart)); got != want[i] {
				t.Errorf("%s, images apart %v: %s, want %s", signal, apart, got, want[i])
			}
		}
	}
}
