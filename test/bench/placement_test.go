package bench

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// BenchmarkPlacement measures how Pods without special wishes get a node: from their creation to their binding, with
// clients that create as fast as they can.
func BenchmarkPlacement(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{1000, 5000}, {5000, 10000}} {
		b.Run(fmt.Sprintf("nodes=%d", size.nodes), func(b *testing.B) {
			m := newUnwatched(b)
			client := connect(b, m)
			createNodes(b, client, size.nodes)
			all := newMeter(b, m, mesh.APIServer, mesh.Scheduler, mesh.WorkloadControllers, mesh.PodGC)
			before := all.start()
			b.ResetTimer()
			each(b, size.pods, func(ctx context.Context, i int) error {
				_, err := client.CoreV1().Pods(namespace).Create(ctx, pod(i), metav1.CreateOptions{})
				return err
			})
			awaitObjects(b, objects(client.CoreV1().RESTClient(), "pods"), &corev1.Pod{}, size.pods,
				func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
			b.StopTimer()
			all.report(b, before, size.pods, "pod")
			b.ReportMetric(float64(size.pods)/b.Elapsed().Seconds(), "pods/s")
			for field, metric := range map[string]string{"VmHWM": "all-peak-MiB", "VmRSS": "all-MiB",
				"RssAnon": "all-anonymous-MiB"} {
				sum := 0.0
				for _, mib := range all.memoryMiB(field) {
					sum += mib
				}
				b.ReportMetric(sum, metric)
			}
		})
	}
}
