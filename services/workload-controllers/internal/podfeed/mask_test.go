package podfeed

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		fieldmasktest.ExpectKeptAlike(t, pod, Decoded(), Trim)
		node := &corev1.Node{}
		fill.Fill(node)
		fieldmasktest.ExpectKeptAlike(t, node, Decoded(), Trim)
	}
}
