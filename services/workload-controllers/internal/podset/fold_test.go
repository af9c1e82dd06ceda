package podset

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Which figures hold for a Pod, before and after its owner has looked at it.
func TestFigures(t *testing.T) {
	succeeded := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
	tracked := func(pod *corev1.Pod) { pod.Finalizers = []string{"other", tracking} }
	const withFinalizer = inherent // the first that is registered
	for _, c := range []struct {
		name    string
		pod     *corev1.Pod
		holding []Figure // by the Pod alone
		looked  []Figure // after the owner's look
	}{
		{"a new Pod", newPod("a", "o"), []Figure{Active}, []Figure{Active, Labelled}},
		{"DEP-140 a ready Pod", newPod("a", "o", readySince(start)), []Figure{Active, Ready},
			[]Figure{Active, Ready, Labelled, Available}},
		{"DEP-041 a Pod that is being deleted", newPod("a", "o", readySince(start), terminating), []Figure{Terminating},
			[]Figure{Terminating}},
		{"DEP-153 a failed Pod", newPod("a", "o", failed), []Figure{Terminal, Failed}, []Figure{Terminal, Failed}},
		{"DEP-153 a failed Pod that is being deleted", newPod("a", "o", failed, terminating),
			[]Figure{Terminal, Failed}, []Figure{Terminal, Failed}},
		{"a Pod that has succeeded", newPod("a", "o", succeeded), []Figure{Terminal}, []Figure{Terminal}},
		{"one that a Job has yet to count", newPod("a", "o", succeeded, tracked),
			[]Figure{Terminal, withFinalizer}, []Figure{Terminal, withFinalizer}},
		{"one with the finalizer that still runs", newPod("a", "o", tracked), []Figure{Active},
			[]Figure{Active, Labelled}},
		{"DEP-152 a Pod without all labels of the template", newPod("a", "o",
			func(pod *corev1.Pod) { delete(pod.Labels, "v") }), []Figure{Active}, []Figure{Active}},
		{"DEP-175 a Pod that no longer matches", newPod("a", "o", readySince(start), relabelled),
			[]Figure{Active, Ready}, []Figure{Unmatched}},
		{"a Pod that no longer matches and is being deleted", newPod("a", "o", relabelled, terminating),
			[]Figure{Terminating}, nil},
		{"a Pod that no longer matches and has failed", newPod("a", "o", relabelled, failed),
			[]Figure{Terminal, Failed}, []Figure{Terminal, Failed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			index := NewIndex()
			if got := index.Register(WithFinalizer(tracking)); got != withFinalizer {
				t.Fatalf("registered as %d", got)
			}
			index.Upsert(c.pod)
			check := func(when string, want []Figure) {
				t.Helper()
				for figure := range withFinalizer + 1 {
					count, pods := index.Count(Owner("o"), figure), index.Pods(Owner("o"), figure)
					holds := slices.Contains(want, figure)
					if (count == 1) != holds || len(pods) != count || holds && pods[0] != c.pod {
						t.Errorf("%s: figure %d counts %d and lists %v; it holds: %t", when, figure, count,
							names(pods), holds)
					}
				}
			}
			check("at first", c.holding)
			index.Observe("o", web, start)
			check("after a look", c.looked)
			index.Delete(c.pod)
			check("when it is gone", nil)
		})
	}
}

// A figure that is registered late counts the Pods that are there, in every group that they are in.
func TestALateFigure(t *testing.T) {
	index := NewIndex()
	services := NewSelections(index)
	services.Put(object("web", 1), selecting("app", "web"))
	for n := range 3 {
		index.Upsert(newPod(uidOf(n), "o", failed, func(pod *corev1.Pod) {
			pod.Spec.NodeName, pod.Finalizers = "n", []string{tracking}
		}))
	}
	figure := index.Register(WithFinalizer(tracking))
	for _, key := range []Key{Owner("o"), Node("n"), Namespace("default"), services.Key("default", "web")} {
		if got := len(index.Pods(key, figure)); got != 3 || index.Count(key, figure) != 3 {
			t.Errorf("%v: %d Pods, %d counted, want 3", key, got, index.Count(key, figure))
		}
	}
	index.Upsert(newPod(uidOf(0), "o", failed, func(pod *corev1.Pod) { pod.Spec.NodeName = "n" }))
	if got := index.Count(Owner("o"), figure); got != 2 {
		t.Errorf("%d counted after one has lost the finalizer, want 2", got)
	}
	if got := index.Count(Owner("o"), Failed); got != 3 {
		t.Errorf("%d failed, want 3", got)
	}
}

// A DaemonSet finds the Pods of a node, whoever controls them and whatever became of them.
func TestPodsOfANode(t *testing.T) {
	on := func(node string) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Spec.NodeName = node } }
	index := NewIndex()
	for _, pod := range []*corev1.Pod{newPod("a", "o", on("n1")), newPod("b", "", on("n1")),
		newPod("c", "other", on("n1"), failed), newPod("d", "o", on("n2")), newPod("e", "o")} {
		index.Upsert(pod)
	}
	if got, want := names(index.Pods(Node("n1"), Active)), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("active on n1: %v, want %v", got, want)
	}
	if got, want := names(index.Pods(Node("n1"), Terminal)), []string{"c"}; !slices.Equal(got, want) {
		t.Errorf("ended on n1: %v, want %v", got, want)
	}
	index.Upsert(newPod("e", "o", on("n2"))) // it is bound
	if got, want := names(index.Pods(Node("n2"), Active)), []string{"d", "e"}; !slices.Equal(got, want) {
		t.Errorf("active on n2: %v, want %v", got, want)
	}
	if got := index.Count(Node(""), Active); got != 0 {
		t.Errorf("%d Pods on no node are counted as those of one", got)
	}
}

func uidOf(n int) types.UID { return types.UID(fmt.Sprint("pod-", n)) }
