package feed

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/fieldmask/fieldmasktest"
)

// What is kept of a Pod or a Node is the same whether it was decoded whole or through the mask.
func TestTheMaskTakesNothingThatIsKept(t *testing.T) {
	for seed := range int64(300) {
		fill := newFiller(seed)
		pod, node := &corev1.Pod{}, &corev1.Node{}
		fill.Fill(pod)
		fill.Fill(node)
		// The API has had none for years.
		pod.SetSelfLink("")
		node.SetSelfLink("")
		start := metav1.Unix(seed, 0)
		pod.Status.StartTime = &start
		expectKeptAlike(t, pod, trimPod)
		pod.Spec.NodeName = ""
		expectKeptAlike(t, pod, trimPod)
		expectKeptAlike(t, node, trimNode)
	}
}

func expectKeptAlike[T runtime.Object](t *testing.T, object T, trim func(any) (any, error)) {
	t.Helper()
	whole, masked := fieldmasktest.Decoded(t, object, Decoded())
	want, err := trim(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := trim(masked); err != nil || !equality.Semantic.DeepEqual(got, want) {
		t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
}
