package podfeed

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/randfill"

	"keelson.dev/kit/fieldmask/fieldmasktest"
)

// What is kept of a Pod or a Node is the same whether it was decoded whole or through the mask.
func TestTheMaskTakesNothingThatIsKept(t *testing.T) {
	for seed := range int64(300) {
		r, fill := rand.New(rand.NewPCG(uint64(seed), 9)), randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 2)
		pod := anyPod(r, fill, int(seed))
		fill.Fill(&pod.Spec.Overhead)
		fill.Fill(&pod.Spec.Resources)
		fill.Fill(&pod.Spec.Affinity)
		fill.Fill(&pod.Spec.Volumes)
		if r.IntN(2) == 0 && len(pod.OwnerReferences) > 0 {
			yes := true
			owner := &pod.OwnerReferences[0]
			owner.Kind, owner.Controller = []string{"Job", "DaemonSet"}[r.IntN(2)], &yes
			pod.Spec.NodeName = ""
		}
		whole, masked := fieldmasktest.Decoded(t, pod, Decoded())
		inside, before := *whole, whole.DeepCopy()
		if want, got := stripPod(whole), stripPod(masked); !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("seed %d:\ngot  %+v\nwant %+v", seed, got, want)
		}
		if !equality.Semantic.DeepEqual(&inside, before) {
			t.Fatalf("seed %d: stripping has changed what Pods share:\n%+v\nwas %+v", seed, inside, before)
		}
		node := &corev1.Node{}
		fill.Fill(node)
		wholeNode, maskedNode := fieldmasktest.Decoded(t, node, Decoded())
		if want, got := stripNode(wholeNode), stripNode(maskedNode); !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("seed %d:\ngot  %+v\nwant %+v", seed, got, want)
		}
	}
}
