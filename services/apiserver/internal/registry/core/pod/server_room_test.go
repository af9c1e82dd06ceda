package pod_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"keelson.dev/services/apiserver/internal/servertest"
)

// addNode makes a node with room for the CPUs and Pods.
func addNode(t testing.TB, s *servertest.Server, name, cpu, pods string) {
	t.Helper()
	nodes := s.Client.CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{
		"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse(pods)}
	if _, err := nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func asking(name, cpu string) *corev1.Pod {
	return nginx(func(p *corev1.Pod) {
		p.Name = name
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	})
}

func tryBind(t testing.TB, pods typedcorev1.PodInterface, name, node string) error {
	return pods.Bind(t.Context(), binding(name, node), metav1.CreateOptions{})
}

// testBindNowhere: a node that does not exist takes no Pod.
func testBindNowhere(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	create(t, pods, nginx())
	wantError(t, tryBind(t, pods, "nginx", "nowhere"), apierrors.IsConflict, `node "nowhere" does not exist`)
	addNode(t, c.Server, "nowhere", "1", "10")
	must(t, tryBind(t, pods, "nginx", "nowhere"))
}

// testBindFull: what the node's agent would refuse is not bound, and what ends makes room.
func testBindFull(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	addNode(t, c.Server, "small", "1", "3")
	direct := asking("direct", "600m") // counts although no scheduler bound it
	direct.Spec.NodeName = "small"
	create(t, pods, direct)
	for _, name := range []string{"next", "fits", "third", "fourth"} {
		cpu := map[string]string{"next": "401m", "fits": "400m", "third": "0", "fourth": "0"}[name]
		create(t, pods, asking(name, cpu))
	}
	servertest.Eventually(t, "the Pod that was made on the node counts", func(ctx context.Context) string {
		dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if pods.Bind(ctx, binding("next", "small"), dry) == nil {
			return "another one fits"
		}
		return ""
	})
	wantError(t, tryBind(t, pods, "next", "small"), apierrors.IsConflict,
		`pod next does not fit on node "small": insufficient cpu, requested: 401m, used: 600m, allocatable: 1`)
	must(t, pods.Bind(t.Context(), binding("fits", "small"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	must(t, tryBind(t, pods, "fits", "small"))
	must(t, tryBind(t, pods, "third", "small"))
	wantError(t, tryBind(t, pods, "fourth", "small"), apierrors.IsConflict, "too many pods, bound: 3, allocatable: 3")

	ended := get(t, pods, "direct")
	ended.Status.Phase = corev1.PodSucceeded
	_, err := pods.UpdateStatus(t.Context(), ended, metav1.UpdateOptions{})
	must(t, err)
	must(t, tryBind(t, pods, "next", "small"))
	zero := int64(0)
	must(t, pods.Delete(t.Context(), "third", metav1.DeleteOptions{GracePeriodSeconds: &zero}))
	must(t, tryBind(t, pods, "fourth", "small"))
}

// testBindAtOnce: of many bindings at a time a node gets those for which it has room, not one more and not one less.
func testBindAtOnce(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	const all, fitting = 60, 20
	addNode(t, c.Server, "wanted", fmt.Sprint(fitting), "110")
	for i := range all {
		create(t, pods, asking(fmt.Sprintf("p-%d", i), "1"))
	}
	var bound, other atomic.Int64
	var binders sync.WaitGroup
	for i := range all {
		for range 2 { // two schedulers
			binders.Go(func() {
				switch err := tryBind(t, pods, fmt.Sprintf("p-%d", i), "wanted"); {
				case err == nil:
					bound.Add(1)
				case !apierrors.IsConflict(err):
					other.Add(1)
				}
			})
		}
	}
	binders.Wait()
	if bound.Load() != fitting || other.Load() != 0 {
		t.Errorf("%d were bound, %d other errors, want %d and 0", bound.Load(), other.Load(), fitting)
	}
}

// TestRoomSurvivesRestart: a new server knows what the Pods of a node ask for.
func TestRoomSurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	first := servertest.StartIn(t, dir)
	addNode(t, first, "n", "1", "10")
	namespace := first.Namespace(t, "restart")
	pods := first.Client.CoreV1().Pods(namespace)
	for _, name := range []string{"a", "b"} {
		create(t, pods, asking(name, "600m"))
	}
	must(t, tryBind(t, pods, "a", "n"))
	must(t, first.Stop())
	pods = servertest.StartIn(t, dir).Client.CoreV1().Pods(namespace)
	wantError(t, tryBind(t, pods, "b", "n"), apierrors.IsConflict, "insufficient cpu")
}

// BenchmarkBind is one binding to a node that has 100 Pods, through the whole server.
func BenchmarkBind(b *testing.B) {
	s := servertest.Start(b)
	addNode(b, s, "big", "100000", "1000000")
	pods := s.Client.CoreV1().Pods(s.Namespace(b, "bind"))
	add := func(name string) {
		if _, err := pods.Create(b.Context(), asking(name, "1m"), metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 100 {
		add(fmt.Sprintf("there-%d", i))
		if err := tryBind(b, pods, fmt.Sprintf("there-%d", i), "big"); err != nil {
			b.Fatal(err)
		}
	}
	for i := range b.N {
		add(fmt.Sprintf("p-%d", i))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := tryBind(b, pods, fmt.Sprintf("p-%d", i), "big"); err != nil {
			b.Fatal(err)
		}
	}
}
