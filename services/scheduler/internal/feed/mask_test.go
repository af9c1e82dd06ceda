package feed

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldmask/fieldmasktest"
	"keelson.dev/services/scheduler/internal/groups"
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
		fieldmasktest.ExpectKeptAlike(t, pod, Decoded(), trimPod)
		pod.Spec.NodeName = ""
		fieldmasktest.ExpectKeptAlike(t, pod, Decoded(), trimPod)
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{APIVersion: "apps/v1",
			Kind: groups.ReplicaSet, Name: "web", Controller: ptr.To(true)})
		fieldmasktest.ExpectKeptAlike(t, pod, Decoded(), trimPod)
		fieldmasktest.ExpectKeptAlike(t, node, Decoded(), trimNode)
	}
}

// Objects of one template share memory, so trimming one changes nothing in another, nor in what both have.
func TestTrimmingChangesNobodyElse(t *testing.T) {
	for seed := range int64(300) {
		fill := newFiller(seed)
		pod, node := &corev1.Pod{}, &corev1.Node{}
		fill.Fill(pod)
		fill.Fill(node)
		otherPod, otherNode := *pod, *node
		wantPod, wantNode := pod.DeepCopy(), node.DeepCopy()
		if _, err := trimPod(pod); err != nil {
			t.Fatal(err)
		}
		if _, err := trimNode(node); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(&otherPod, wantPod) || !equality.Semantic.DeepEqual(&otherNode, wantNode) {
			t.Fatalf("seed %d: got %+v and %+v, want %+v and %+v", seed, otherPod, otherNode, wantPod, wantNode)
		}
	}
}

// What comes through the mask stays where it is shared.
func TestTrimmingSharesContainers(t *testing.T) {
	whole := fullPod("")
	_, masked := fieldmasktest.Decoded(t, whole, Decoded())
	shared := masked.Spec.Containers
	if _, err := trimPod(masked); err != nil {
		t.Fatal(err)
	}
	if &masked.Spec.Containers[0] != &shared[0] {
		t.Error("containers that come through the mask are copied")
	}
	if _, err := trimPod(whole); err != nil || whole.Spec.Containers[0].Env != nil {
		t.Errorf("a whole Pod keeps %+v, %v", whole.Spec.Containers[0], err)
	}
}
