package tainteviction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/seconds"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type podOption func(*corev1.Pod)

func newPod(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{NodeName: "n"}}
	for _, option := range options {
		option(p)
	}
	return p
}

// tolerating gives a Pod a toleration of a key; "" means all. Less than no seconds means for ever.
func tolerating(key string, seconds int64) podOption {
	return func(p *corev1.Pod) {
		t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
		if seconds >= 0 {
			t.TolerationSeconds = ptr.To(seconds)
		}
		p.Spec.Tolerations = append(p.Spec.Tolerations, t)
	}
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }

func phase(phase corev1.PodPhase) podOption { return func(p *corev1.Pod) { p.Status.Phase = phase } }

// newNode has NoExecute taints like "key@-60", which was added 60 seconds ago, or "key", which does not say when.
func newNode(taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node"}}
	for _, text := range taints {
		key, at, dated := strings.Cut(text, "@")
		taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute}
		if dated {
			added, err := time.ParseDuration(at + "s")
			if err != nil {
				panic(err)
			}
			taint.TimeAdded = ptr.To(metav1.NewTime(now.Add(added)))
		}
		n.Spec.Taints = append(n.Spec.Taints, taint)
	}
	return n
}

func seen(key string, ago time.Duration) map[taintKey]time.Time {
	return map[taintKey]time.Time{{key, corev1.TaintEffectNoExecute, ""}: now.Add(-ago)}
}

// summary prints a plan as "evict: a b; spared: c; wake: 5s".
func summary(plan Plan) string {
	var parts []string
	list := func(what string, pods []*corev1.Pod) {
		var names []string
		for _, p := range pods {
			names = append(names, p.Name)
		}
		if len(names) > 0 {
			parts = append(parts, what+": "+strings.Join(names, " "))
		}
	}
	list("evict", plan.Evict)
	list("spared", plan.Spared)
	if !plan.Wake.IsZero() {
		parts = append(parts, fmt.Sprintf("wake: %v, %d wait", plan.Wake.Sub(now), len(plan.Waiting)))
	}
	return strings.Join(parts, "; ")
}

func TestDecide(t *testing.T) {
	const notReady, unreachable = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
	daemon := []podOption{tolerating(notReady, -1), tolerating(unreachable, -1)}
	usual := []podOption{tolerating(notReady, 300), tolerating(unreachable, 300)}
	waited := map[types.UID]bool{"uid-a": true}
	for name, test := range map[string]struct {
		in   Input
		want string
	}{
		"no taint": {Input{Node: newNode(), Pods: []*corev1.Pod{newPod("a")}}, ""},
		"SAF-067 a taint that is not tolerated": {Input{Node: newNode("k"), Pods: []*corev1.Pod{newPod("a"),
			newPod("b", tolerating("k", -1)), newPod("c", tolerating("other", -1))}}, "evict: a c"},
		"POD-080 the usual Pod has its 300 s": {Input{Node: newNode(unreachable + "@-299"),
			Pods: []*corev1.Pod{newPod("a", usual...)}}, "wake: 1s, 1 wait"},
		"POD-080 and no more": {Input{Node: newNode(unreachable + "@-300"),
			Pods: []*corev1.Pod{newPod("a", usual...)}}, "evict: a"},
		"SET-148 daemon Pods stay where nothing is ready": {Input{Node: newNode(notReady + "@-9999"),
			Pods: []*corev1.Pod{newPod("a", daemon...)}}, ""},
		"SET-148 and on nodes that cannot be reached": {Input{Node: newNode(unreachable + "@-9999"),
			Pods: []*corev1.Pod{newPod("a", daemon...)}}, ""},
		"SET-148 but not beside another taint": {Input{Node: newNode(unreachable, "k"),
			Pods: []*corev1.Pod{newPod("a", daemon...)}}, "evict: a"},
		"whoever tolerates everything stays": {Input{Node: newNode("k@-9999"),
			Pods: []*corev1.Pod{newPod("a", tolerating("", -1))}}, ""},
		"the first toleration that matches counts": {Input{Node: newNode("k@-5"), Pods: []*corev1.Pod{
			newPod("a", tolerating("k", 60), tolerating("k", -1)),
			newPod("b", tolerating("k", -1), tolerating("k", 1))}}, "wake: 55s, 1 wait"},
		"of several taints the most urgent counts": {Input{Node: newNode("k@-5", "l@-50"), Pods: []*corev1.Pod{
			newPod("a", tolerating("k", 60), tolerating("l", 60)),
			newPod("b", tolerating("k", 60), tolerating("l", -1))}}, "wake: 10s, 2 wait"},
		"a toleration of 0 s is none": {Input{Node: newNode("k"), Pods: []*corev1.Pod{
			newPod("a", tolerating("k", 0))}}, "evict: a"},
		"nor is a negative one": {Input{Node: newNode("k"), Pods: []*corev1.Pod{newPod("a", tolerating("k", 0),
			func(p *corev1.Pod) { p.Spec.Tolerations[0].TolerationSeconds = ptr.To[int64](-1) })}}, "evict: a"},
		"one of more than all time": {Input{Node: newNode("k@-5"), Pods: []*corev1.Pod{
			newPod("a", tolerating("k", math.MaxInt64))}}, "wake: " +
			(seconds.Most*time.Second - 5*time.Second).String() + ", 1 wait"},
		"a taint without a time counts from when it was seen": {Input{Node: newNode("k"),
			Since: seen("k", time.Minute),
			Pods:  []*corev1.Pod{newPod("a", tolerating("k", 90))}}, "wake: 30s, 1 wait"},
		"one whose time is yet to come, too": {Input{Node: newNode("k@9999"), Since: seen("k", time.Minute),
			Pods: []*corev1.Pod{newPod("a", tolerating("k", 90))}}, "wake: 30s, 1 wait"},
		"a new leader counts from when it was added": {Input{Node: newNode("k@-60"),
			Pods: []*corev1.Pod{newPod("a", tolerating("k", 90))}}, "wake: 30s, 1 wait"},
		"what is being deleted goes anyway": {Input{Node: newNode("k"), Pods: []*corev1.Pod{
			newPod("a", terminating), newPod("b")}}, "evict: b"},
		"what has ended goes too": {Input{Node: newNode("k"), Pods: []*corev1.Pod{
			newPod("a", phase(corev1.PodSucceeded)), newPod("b", phase(corev1.PodFailed))}}, "evict: a b"},
		"the taint has gone in time": {Input{Node: newNode(), Waiting: waited, Pods: []*corev1.Pod{
			newPod("a"), newPod("b")}}, "spared: a"},
		"the Pod tolerates it now": {Input{Node: newNode("k@-5"), Waiting: waited, Pods: []*corev1.Pod{
			newPod("a", tolerating("k", -1))}}, "spared: a"},
		"its time came": {Input{Node: newNode("k@-5"), Waiting: waited, Pods: []*corev1.Pod{
			newPod("a", tolerating("k", 5))}}, "evict: a"},
		"a taint that only keeps away": {Input{Pods: []*corev1.Pod{newPod("a")},
			Node: &corev1.Node{Spec: corev1.NodeSpec{
				Taints: []corev1.Taint{{Key: "k", Effect: "NoSchedule"}, {Key: "k", Effect: "PreferNoSchedule"}}}}},
			""},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Now = now
			if got := summary(Decide(test.in)); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// Whatever the taints and the Pods: no Pod goes before its time nor stays after it, a taint that goes spares
// everybody, and a leader that knows nothing evicts no Pod earlier than one who saw it all.
func TestProperties(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		keys := []string{"k", "l", "m"}
		var texts []string
		for _, key := range keys[:r.IntN(4)] {
			if r.IntN(3) > 0 {
				key += fmt.Sprint("@", -r.IntN(100))
			}
			texts = append(texts, key)
		}
		in := Input{Now: now, Node: newNode(texts...), Since: map[taintKey]time.Time{}, Waiting: map[types.UID]bool{}}
		for _, taint := range in.Node.Spec.Taints {
			if r.IntN(2) == 0 {
				in.Since[keyOf(taint)] = now.Add(-time.Duration(r.IntN(100)) * time.Second)
			}
		}
		for i := range 5 {
			var options []podOption
			for _, key := range keys {
				if r.IntN(3) > 0 {
					options = append(options, tolerating(key, int64(r.IntN(100)-5)))
				}
			}
			in.Pods = append(in.Pods, newPod(fmt.Sprint(i), options...))
			in.Waiting[in.Pods[i].UID] = r.IntN(2) == 0
		}
		before := fmt.Sprint(in.Since, in.Waiting, in.Node.Spec.Taints)
		plan := Decide(in)
		if again := Decide(in); !reflect.DeepEqual(plan, again) || fmt.Sprint(in.Since, in.Waiting,
			in.Node.Spec.Taints) != before {
			t.Fatalf("seed %d: the decision changed its input", seed)
		}
		for _, p := range in.Pods {
			tolerated := !slices.ContainsFunc(in.Node.Spec.Taints, func(taint corev1.Taint) bool {
				return !slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
					return t.Key == taint.Key && t.TolerationSeconds == nil
				})
			})
			if evicted := slices.Contains(plan.Evict, p); tolerated && (evicted || plan.Waiting[p.UID]) ||
				!tolerated && evicted == plan.Waiting[p.UID] {
				t.Fatalf("seed %d: Pod %s, tolerated %v: %s", seed, p.Name, tolerated, summary(plan))
			}
		}
		ignorant := in
		ignorant.Since, ignorant.Waiting = nil, nil
		for _, p := range Decide(ignorant).Evict {
			if !slices.Contains(plan.Evict, p) {
				t.Fatalf("seed %d: who knows nothing evicts %s: %s", seed, p.Name, summary(plan))
			}
		}
		if next := Decide(Input{Now: plan.Wake, Node: in.Node, Pods: in.Pods,
			Since: plan.Since}); !plan.Wake.IsZero() &&
			len(next.Evict) == len(plan.Evict) {
			t.Fatalf("seed %d: at the time to wake nobody goes", seed)
		}
		bare := Decide(Input{Now: now, Node: newNode(), Pods: in.Pods, Since: plan.Since, Waiting: plan.Waiting})
		if len(bare.Evict)+len(bare.Since)+len(bare.Waiting) > 0 || len(bare.Spared) != len(plan.Waiting) {
			t.Fatalf("seed %d: without taints %s, of %s", seed, summary(bare), summary(plan))
		}
	}
}
