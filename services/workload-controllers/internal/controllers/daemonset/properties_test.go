package daemonset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/podview"
)

// anyInput is any state that a DaemonSet may be in: with at most one Pod of each template on a node, where it has
// surge, and at most one in all without.
func anyInput(random *rand.Rand) (in Input, surge, unavailable int) {
	nodes := random.IntN(12)
	var verdicts []verdict
	desired := 0
	for range nodes {
		v := []verdict{runs, runs, runs, keeps, unfit}[random.IntN(5)]
		verdicts = append(verdicts, v)
		if v == runs {
			desired++
		}
	}
	bound := intstr.FromInt(1 + random.IntN(4))
	if random.IntN(2) == 0 {
		bound = intstr.FromString(fmt.Sprintf("%d%%", 1+random.IntN(100)))
	}
	limit, _ := intstr.GetScaledValueFromIntOrPercent(&bound, desired, true)
	set := newSet(minReady(random.Int32N(2)*10), rolling("0", bound.String()))
	images := [][]string{{"agent:1"}, {"agent:2"}}
	if unavailable = max(1, limit); random.IntN(2) == 0 {
		// A share of no nodes is 0: then there is no surge.
		if surge, unavailable = limit, 0; surge == 0 {
			unavailable = 1
		}
		rolling(bound.String(), "0")(set)
		images = [][]string{{"agent:1", "agent:2"}}
	}
	var pods []*corev1.Pod
	for at := range verdicts {
		for _, image := range images[random.IntN(len(images))] {
			if random.IntN(4) > 0 {
				pods = append(pods, anyPod(random, fmt.Sprint("n", at+1), image))
			}
		}
	}
	in = inputOf(set, verdicts, pods...)
	in.Failures = map[string]Failure{"n1": {Count: random.IntN(5), Last: now.Add(-time.Second), Generation: 3}}
	in.Missing = map[string]bool{fmt.Sprint("n", nodes): nodes > 0 && verdicts[nodes-1] == unfit}
	return in, surge, unavailable
}

func anyPod(random *rand.Rand, node, image string) *corev1.Pod {
	pod := newPod(node+" "+image, node, image, readyFor(time.Duration(random.IntN(20))*time.Second))
	pod.UID = types.UID(pod.Name)
	[]func(*corev1.Pod){func(*corev1.Pod) {}, func(*corev1.Pod) {}, unready, unbound, leaving,
		ended(corev1.PodFailed), ended(corev1.PodSucceeded)}[random.IntN(7)](pod)
	return pod
}

// stock counts the Pods of the nodes that are neither ended nor ending.
type stock struct{ live, available, old map[string]int }

func stockOf(in Input, pods []*corev1.Pod) stock {
	s := stock{map[string]int{}, map[string]int{}, map[string]int{}}
	for _, pod := range pods {
		node := nodeOf(pod)
		if v, ok := in.Places.at[node]; !ok || in.Places.list[v].verdict != runs || !podview.IsActive(pod) {
			continue
		}
		s.live[node]++
		if podview.IsAvailable(pod, time.Duration(in.DaemonSet.Spec.MinReadySeconds)*time.Second, in.Now) {
			s.available[node]++
			if pod.Labels["controller-revision-hash"] == hashOf("agent:1") {
				s.old[node]++
			}
		}
	}
	return s
}

func desired(in Input) int {
	n := 0
	for _, place := range in.Places.list {
		if place.verdict == runs {
			n++
		}
	}
	return n
}

// SET-114 SET-156: whatever the state, a pass makes Pods only on nodes that are to have them, no second one without
// surge, and takes no more serving Pods away than the bound of unavailable nodes leaves.
func TestBoundsHoldInAnyState(t *testing.T) {
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 1))
		in, surge, unavailable := anyInput(random)
		plan := decide(t, in)
		fail := func(what string) {
			t.Fatalf("seed %d: %s: %s with surge %d, unavailable %d", seed, what, text(plan), surge, unavailable)
		}
		before, gone := stockOf(in, in.Pods), map[*corev1.Pod]bool{}
		for _, d := range plan.Delete {
			if gone[d.Pod] || d.Pod.DeletionTimestamp != nil {
				fail("a Pod that goes is ended")
			}
			gone[d.Pod] = true
		}
		after := stockOf(in, slices.DeleteFunc(slices.Clone(in.Pods), func(pod *corev1.Pod) bool { return gone[pod] }))
		made := map[string]bool{}
		for _, node := range plan.Create {
			at, ok := in.Places.at[node]
			if !ok || in.Places.list[at].verdict != runs || made[node] {
				fail("a Pod too many for " + node)
			}
			made[node] = true
			if after.live[node] > 0 && surge == 0 || after.live[node] > 1 {
				fail("a Pod is made beside another on " + node)
			}
		}
		if lacking := desired(in) - len(after.available); lacking > max(unavailable,
			desired(in)-len(before.available)) {
			fail(fmt.Sprintf("%d nodes lack a Pod that serves", lacking))
		}
		surging := 0
		for node := range after.old {
			if made[node] || after.live[node] > 1 {
				surging++
			}
		}
		doubled := 0
		for node := range before.old {
			if before.live[node] > 1 {
				doubled++
			}
		}
		if surging > max(surge, doubled) {
			fail(fmt.Sprintf("%d nodes have a second Pod", surging))
		}
	}
}

// SET-156: with OnDelete no Pod that runs where it should goes for being old.
func TestOnDeleteLeavesOldPods(t *testing.T) {
	for seed := range uint64(500) {
		in, _, _ := anyInput(rand.New(rand.NewPCG(seed, 2)))
		in.DaemonSet = newSet(onDelete, func(set *appsv1.DaemonSet) { set.Generation = 4 })
		before := stockOf(in, in.Pods)
		for _, d := range decide(t, in).Delete {
			if node := nodeOf(d.Pod); before.live[node] == 1 && podview.IsActive(d.Pod) && before.available[node] > 0 {
				t.Fatalf("seed %d: %s goes (%s)", seed, d.Pod.Name, d.Reason)
			}
		}
	}
}
