package pods

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
	"keelson.dev/services/podgc/internal/nodepods"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type podOption func(*corev1.Pod)

func pod(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default",
		CreationTimestamp: metav1.NewTime(now)}}
	p.Status.Phase = corev1.PodRunning
	for _, option := range options {
		option(p)
	}
	return p
}

func on(node string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
func phase(phase corev1.PodPhase) podOption {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}
func aged(age time.Duration) podOption {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-age)) }
}
func terminating(p *corev1.Pod) { t := metav1.NewTime(now); p.DeletionTimestamp = &t }

func nodes(list ...*corev1.Node) map[string]*corev1.Node {
	byName := map[string]*corev1.Node{}
	for _, n := range list {
		byName[n.Name] = n
	}
	return byName
}

func node(name string, ready corev1.ConditionStatus, taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	for _, key := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

// summary prints a plan as "reason:pod[+failed][+disrupted]" words.
func summary(plan Plan) string {
	var words []string
	for _, c := range plan.Collect {
		word := fmt.Sprintf("%s:%s", c.Reason, c.Pod.Name)
		if c.MarkFailed {
			word += "+failed"
		}
		if c.Disruption != nil {
			word += "+disrupted"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestDecide(t *testing.T) {
	outOfService := corev1.TaintNodeOutOfService
	long := map[string]time.Time{"gone": now.Add(-40 * time.Second)}
	tests := map[string]struct {
		in   Input
		want string
	}{
		"POD-179 SAF-161 SAF-164 an orphan after the quarantine": {
			Input{Pods: []*corev1.Pod{pod("a", on("gone"))}, MissedSince: long}, "Orphaned:a+failed+disrupted",
		},
		"SAF-164 a node missed for a moment less": {
			Input{Pods: []*corev1.Pod{pod("a", on("gone"))},
				MissedSince: map[string]time.Time{"gone": now.Add(-40*time.Second + 1)}}, "",
		},
		"SAF-164 a node missed for the first time": {Input{Pods: []*corev1.Pod{pod("a", on("gone"))}}, ""},
		"SAF-166 a node that came back": {
			Input{Pods: []*corev1.Pod{pod("a", on("gone"))}, Nodes: nodes(node("gone", "True")), MissedSince: long}, "",
		},
		"SAF-072 POD-182 a finished orphan keeps its phase": {
			Input{Pods: []*corev1.Pod{pod("a", on("gone"), phase(corev1.PodSucceeded))}, MissedSince: long},
			"Orphaned:a+disrupted",
		},
		"POD-180 SAF-168 never scheduled and being deleted": {
			Input{Pods: []*corev1.Pod{pod("a", terminating, phase(corev1.PodPending)),
				pod("b", phase(corev1.PodPending))}}, "Unscheduled:a+failed",
		},
		"POD-181 SAF-182 being deleted on a node out of service": {
			Input{Pods: []*corev1.Pod{pod("a", on("n"), terminating), pod("b", on("n"))},
				Nodes: nodes(node("n", "Unknown", outOfService))},
			"OutOfService:a+failed",
		},
		"POD-181 out of service but ready": {
			Input{Pods: []*corev1.Pod{pod("a", on("n"), terminating)}, Nodes: nodes(node("n", "True", outOfService))},
			"",
		},
		"SAF-153 SAF-154 being deleted on an unreachable node": {
			Input{Pods: []*corev1.Pod{pod("a", on("n"), terminating)},
				Nodes: nodes(node("n", "Unknown", corev1.TaintNodeUnreachable))}, "",
		},
		"POD-178 SAF-071 the oldest finished above the threshold, without a condition": {
			Input{Threshold: 1, Nodes: nodes(node("n", "True")), Pods: []*corev1.Pod{
				pod("young", on("n"), phase(corev1.PodFailed)),
				pod("old", on("n"), phase(corev1.PodFailed), aged(time.Hour)),
				pod("older", on("n"), phase(corev1.PodSucceeded), aged(2*time.Hour)),
				pod("running", on("n"), aged(3*time.Hour)),
			}}, "Terminated:older Terminated:old",
		},
		"SAF-163 a threshold of 0 keeps the finished and still collects orphans": {
			Input{Nodes: nodes(node("n", "True")), MissedSince: long, Pods: []*corev1.Pod{
				pod("done", on("n"), phase(corev1.PodFailed)), pod("lost", on("gone")),
			}}, "Orphaned:lost+failed+disrupted",
		},
		"SAF-163 a negative threshold, too": {
			Input{Threshold: -1, Nodes: nodes(node("n", "True")), MissedSince: long, Pods: []*corev1.Pod{
				pod("done", on("n"), phase(corev1.PodFailed)), pod("lost", on("gone")),
			}}, "Orphaned:lost+failed+disrupted",
		},
		"POD-019 POD-177 SAF-020 nothing to collect": {
			Input{Threshold: 5, Nodes: nodes(node("n", "True")), Pods: []*corev1.Pod{
				pod("run", on("n")), pod("done", on("n"), phase(corev1.PodFailed)), pod("ending", on("n"), terminating),
			}}, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.in.Now = now
			if got := summary(Decide(test.in)); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestMissedSinceIsCarriedOver(t *testing.T) {
	first := Decide(Input{Pods: []*corev1.Pod{pod("a", on("gone"))}, Now: now})
	second := Decide(Input{Pods: []*corev1.Pod{pod("a", on("gone"))}, MissedSince: first.MissedSince,
		Now: now.Add(40 * time.Second)})
	if len(first.Collect) != 0 || summary(second) != "Orphaned:a+failed+disrupted" {
		t.Errorf("first %q, second %q", summary(first), summary(second))
	}
	back := Decide(Input{Pods: []*corev1.Pod{pod("a", on("gone"))}, Nodes: nodes(node("gone", "True")),
		MissedSince: first.MissedSince, Now: now})
	if len(back.MissedSince) != 0 {
		t.Errorf("a node that is back is still missed: %v", back.MissedSince)
	}
}

// SAF-020, SAF-024, SAF-153: whatever the cluster looks like, a live Pod of a node that exists is never taken.
func TestNoLivePodOfAnExistingNodeIsTaken(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := anyInput(r)
		before := slices.Clone(in.Pods)
		for _, c := range Decide(in).Collect {
			live := c.Pod.DeletionTimestamp == nil && (c.Pod.Status.Phase == corev1.PodPending ||
				c.Pod.Status.Phase == corev1.PodRunning)
			if live && (c.Pod.Spec.NodeName == "" || in.Nodes[c.Pod.Spec.NodeName] != nil) {
				t.Fatalf("seed %d: %s of %s taken as %s", seed, c.Pod.Name, c.Pod.Spec.NodeName, c.Reason)
			}
		}
		if !slices.Equal(before, in.Pods) {
			t.Fatalf("seed %d: the input was reordered", seed)
		}
	}
}

// The Pods that a sweep is given are all that it depends on, whatever came before. It never sees more than those.
func TestDecidingOnTheRelevantIsDecidingOnAll(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		in, x, there := anyInput(r), newIndex(), map[types.UID]*corev1.Pod{}
		var nodes nodepods.Index
		for range 60 {
			p := in.Pods[r.IntN(len(in.Pods))].DeepCopy()
			p.UID = types.UID(fmt.Sprint(r.IntN(12)))
			p.Name = string("p" + p.UID)
			if r.IntN(4) == 0 {
				x.remove(p.UID)
				nodes.Replace(there[p.UID], nil)
				delete(there, p.UID)
				continue
			}
			x.put(p)
			nodes.Replace(there[p.UID], p)
			there[p.UID] = p
		}
		in.Pods = slices.Collect(maps.Values(there))
		some := in
		some.Pods = x.relevant(nodes.Elsewhere(in.Nodes), in.Threshold)
		if got, want := Decide(some), Decide(in); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %s of the relevant, %s of all", seed, summary(got), summary(want))
		}
		for _, p := range some.Pods {
			if node := p.Spec.NodeName; (node == "" || in.Nodes[node] != nil) && !podview.IsTerminating(p) &&
				!podview.IsTerminal(p) {
				t.Fatalf("seed %d: %s is none of its business", seed, p.Name)
			}
		}
		for uid := range there {
			x.remove(uid)
		}
		if len(x.terminating)+len(x.finished) != 0 {
			t.Fatalf("seed %d: something is kept of nothing", seed)
		}
	}
}

// anyInput is a cluster of 4 nodes, of which some are missing, and 12 Pods.
func anyInput(r *rand.Rand) Input {
	in := Input{Now: now, Threshold: r.IntN(4), Nodes: map[string]*corev1.Node{}, MissedSince: map[string]time.Time{}}
	for i := range 4 {
		name := fmt.Sprint("n", i)
		if r.IntN(2) == 0 {
			taints := []string{corev1.TaintNodeUnreachable, corev1.TaintNodeOutOfService}[:r.IntN(3)]
			in.Nodes[name] = node(name, []corev1.ConditionStatus{"True", "Unknown"}[r.IntN(2)], taints...)
		}
		in.MissedSince[name] = now.Add(-time.Duration(r.IntN(80)) * time.Second)
	}
	for i := range 12 {
		p := pod(fmt.Sprint("p", i), on([]string{"", "n0", "n1", "n2", "n3"}[r.IntN(5)]),
			aged(time.Duration(r.IntN(9))*time.Minute))
		p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed,
			corev1.PodSucceeded}[r.IntN(4)]
		if r.IntN(3) == 0 {
			terminating(p)
		}
		in.Pods = append(in.Pods, p)
	}
	return in
}
