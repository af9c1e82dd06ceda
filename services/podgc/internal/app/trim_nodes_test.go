package app

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"keelson.dev/services/podgc/internal/collectors/nodehealth"
	"keelson.dev/services/podgc/internal/collectors/tainteviction"
)

// What the cache keeps of a Node tells how it is and which taints it needs, and what it keeps of Pods tells when they
// have to go from it.
func TestTrimmingKeepsWhatNodesAreJudgedBy(t *testing.T) {
	changes, evictions := 0, 0
	for seed := range int64(1000) {
		r, fill := rand.New(rand.NewPCG(uint64(seed), 5)), randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 2)
		whole, _ := anyNode(t, r, fill)
		whole.Spec.Unschedulable = r.IntN(2) == 0
		whole.Labels = map[string]string{"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r",
			"node.kubernetes.io/exclude-disruption": "", "other": "x"}
		effect := some(r, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule)
		whole.Spec.Taints = append(whole.Spec.Taints, corev1.Taint{Key: "k", Effect: effect})
		trimmed, err := trimNode(whole.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		kept := trimmed.(*corev1.Node)
		standing := nodehealth.Standing{Silent: r.IntN(2) == 0, Evict: r.IntN(2) == 0, Halted: r.IntN(2) == 0}
		want := nodehealth.Decide(nodehealth.Input{Now: now, Node: whole, Standing: standing})
		got := nodehealth.Decide(nodehealth.Input{Now: now, Node: kept, Standing: standing})
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: of what is kept %+v, of all %+v", seed, got, want)
		}
		if !reflect.DeepEqual(nodehealth.ReadLabels(whole.Labels), kept.Labels) || len(kept.Labels) != 3 {
			t.Fatalf("seed %d: labels %v", seed, kept.Labels)
		}
		if want.Retaint {
			changes++
		}
		evictions += expectSameEvictions(t, r, fill, whole, kept)
	}
	if changes < 100 || evictions < 100 {
		t.Errorf("only %d Nodes are tainted, %d Pods evicted", changes, evictions)
	}
}

func expectSameEvictions(t *testing.T, r *rand.Rand, fill *randfill.Filler, whole, kept *corev1.Node) (evicted int) {
	t.Helper()
	all, trimmed := tainteviction.Input{Now: now, Node: whole}, tainteviction.Input{Now: now, Node: kept}
	for i := range 4 {
		pod := anyPod(r, fill, i)
		for range r.IntN(3) {
			toleration := corev1.Toleration{Key: some(r, "k", "l", ""), Operator: corev1.TolerationOpExists,
				Effect: some(r, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, "")}
			if toleration.Effect == corev1.TaintEffectNoExecute && r.IntN(2) == 0 {
				toleration.TolerationSeconds = ptr.To(r.Int64N(100))
			}
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
		}
		one, err := trimPod(pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		all.Pods, trimmed.Pods = append(all.Pods, pod), append(trimmed.Pods, one.(*corev1.Pod))
	}
	print := func(plan tainteviction.Plan) string {
		text := fmt.Sprint(plan.Wake, plan.Waiting)
		for _, pod := range plan.Evict {
			text += " " + pod.Name
		}
		return text
	}
	want := tainteviction.Decide(all)
	if got := print(tainteviction.Decide(trimmed)); got != print(want) {
		t.Fatalf("of what is kept %s, of all %s", got, print(want))
	}
	return len(want.Evict)
}

// Pods that tolerate the same share what is kept of it, and nothing is shared that differs.
func TestTolerationsAreShared(t *testing.T) {
	kept := newTolerations()
	list := func(seconds *int64) []corev1.Toleration {
		return []corev1.Toleration{
			{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: seconds},
			{Key: "b", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		}
	}
	one, two := kept.of(list(ptr.To[int64](300))), kept.of(list(ptr.To[int64](300)))
	if len(one) != 1 || &one[0] != &two[0] {
		t.Errorf("%v and %v are not shared", one, two)
	}
	for name, other := range map[string][]corev1.Toleration{"for ever": list(nil), "at once": list(ptr.To[int64](0))} {
		if got := kept.of(other); !reflect.DeepEqual(got, other[:1]) {
			t.Errorf("%s: %v is kept of %v", name, got, other)
		}
	}
	exists := func(key string, effect corev1.TaintEffect) []corev1.Toleration {
		return []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}}
	}
	twice := append(exists("a", ""), exists("b", "")...)
	for _, other := range [][]corev1.Toleration{exists("ab", ""), twice, exists("b", ""), exists("a", "NoExecute")} {
		if got := kept.of(other); !reflect.DeepEqual(got, other) {
			t.Errorf("%v is kept of %v", got, other)
		}
	}
	for i := range int64(3 * knownTolerations) {
		if kept.of(list(&i)); kept.shared.Len() > knownTolerations {
			t.Fatalf("%d lists are kept", kept.shared.Len())
		}
	}
	if got := kept.of(list(nil)[1:]); got != nil {
		t.Errorf("%v is kept of what concerns no eviction", got)
	}
}
