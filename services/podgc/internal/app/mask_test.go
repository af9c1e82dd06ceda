package app

import (
	"math/rand/v2"
	"reflect"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
		expectKeptAlike(t, pod, stripPod)
		expectKeptAlike(t, node, stripNode)
		expectKeptAlike(t, job, stripJob)
	}
}

func expectKeptAlike[T runtime.Object](t *testing.T, object T, strip func(any) (any, error)) {
	t.Helper()
	whole, masked := fieldmasktest.Decoded(t, object, decoded())
	inside, before := reflect.New(reflect.TypeOf(whole).Elem()), whole.DeepCopyObject()
	inside.Elem().Set(reflect.ValueOf(whole).Elem())
	want, err := strip(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := strip(masked); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	if !reflect.DeepEqual(inside.Interface(), before) {
		t.Fatalf("trimming has changed what objects share:\n%+v\nwas %+v", inside, before)
	}
}
