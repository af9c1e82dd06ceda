package app

import (
	"math/rand/v2"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/randfill"

	"keelson.dev/kit/fieldmask/fieldmasktest"
)

// What is kept of a Pod, a Node or a Job is the same whether it was decoded whole or through the mask.
func TestTheMaskTakesNothingThatIsKept(t *testing.T) {
	for seed := range int64(300) {
		r, fill := rand.New(rand.NewPCG(uint64(seed), 9)), randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 2)
		pod := anyPod(r, fill, int(seed))
		fill.Fill(&pod.Spec.Volumes)
		fill.Fill(&pod.Spec.SchedulingGroup)
		node, _ := anyNode(t, r, fill)
		fill.Fill(&node.Spec)
		job := &batchv1.Job{}
		fill.Fill(job)
		fieldmasktest.ExpectKeptAlike(t, pod, decoded(), trim)
		fieldmasktest.ExpectKeptAlike(t, node, decoded(), trim)
		fieldmasktest.ExpectKeptAlike(t, job, decoded(), trim)
	}
}
