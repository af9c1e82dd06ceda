package tainteviction

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Pod that comes to a Node asks for a pass only while the Node evicts; it costs nothing to find that out.
func TestWhichPodsWakeTheirNode(t *testing.T) {
	c := &collector{tainted: map[string]memory{}, evicting: map[string]bool{}}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	woken := func() (names []string) {
		for q.Len() > 0 {
			request, _ := q.Get()
			names = append(names, request.Name)
			q.Done(request)
		}
		return names
	}
	nodes, pod, plain, tainted := c.nodes(), newPod("a"), newNode(), newNode("k")
	steps := []struct {
		name string
		do   func()
		want []string
	}{
		{"a Pod of an unknown Node", func() { c.onPod(nil, pod, q) }, nil},
		{"a Node", func() { nodes.Create(t.Context(), event.TypedCreateEvent[*corev1.Node]{Object: plain}, q) }, nil},
		{"its Pod", func() { c.onPod(nil, pod, q) }, nil},
		{"a taint", func() {
			nodes.Update(t.Context(), event.TypedUpdateEvent[*corev1.Node]{ObjectOld: plain, ObjectNew: tainted}, q)
		}, []string{"n"}},
		{"a Pod of a tainted Node", func() { c.onPod(nil, pod, q) }, []string{"n"}},
		{"one that was there", func() { c.onPod(pod, pod, q) }, nil},
		{"the end of the taint", func() {
			nodes.Update(t.Context(), event.TypedUpdateEvent[*corev1.Node]{ObjectOld: tainted, ObjectNew: plain}, q)
		}, []string{"n"}},
		{"a Pod after it", func() { c.onPod(nil, pod, q) }, nil},
		{"a tainted Node", func() {
			nodes.Create(t.Context(), event.TypedCreateEvent[*corev1.Node]{Object: tainted}, q)
		}, []string{"n"}},
		{"its end", func() {
			nodes.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Node]{Object: tainted}, q)
		}, nil},
		{"a Pod of no Node", func() { c.onPod(nil, pod, q) }, nil},
	}
	for _, step := range steps {
		step.do()
		if got := woken(); !slices.Equal(got, step.want) {
			t.Errorf("%s wakes %v, want %v", step.name, got, step.want)
		}
	}
	if allocated := testing.AllocsPerRun(100, func() { c.onPod(nil, pod, q) }); allocated > 0 {
		t.Errorf("a Pod of a Node without taints costs %v objects", allocated)
	}
}
