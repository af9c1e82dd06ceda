package bench

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// BenchmarkPlacement measures how Pods without special wishes get a node: from their creation to their binding, with clients
// that create as fast as they can.
func BenchmarkPlacement(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{1000, 5000}, {5000, 10000}} {
		b.Run(fmt.Sprintf("nodes=%d", size.nodes), func(b *testing.B) {
			m := processes.New(b, 0)
			client := connect(b, m)
			createNodes(b, client, size.nodes)
			all := newMeter(b, m, mesh.APIServer, mesh.Scheduler, mesh.WorkloadControllers, mesh.PodGC)
			all.settle()
			before := all.now()
			b.ResetTimer()
			each(b, size.pods, func(ctx context.Context, i int) error {
				_, err := client.CoreV1().Pods(namespace).Create(ctx, pod(i), metav1.CreateOptions{})
				return err
			})
			awaitBound(b, client, size.pods)
			b.StopTimer()
			all.report(b, before, size.pods, "pod")
			b.ReportMetric(float64(size.pods)/b.Elapsed().Seconds(), "pods/s")
			peak := 0.0
			for _, mib := range all.residentMiB() {
				peak += mib
			}
			b.ReportMetric(peak, "all-MiB")
		})
	}
}

// awaitBound asks with a limit of one object, so that the question costs next to nothing.
func awaitBound(b *testing.B, client kubernetes.Interface, pods int) {
	b.Helper()
	await(b, fmt.Sprintf("%d bound Pods", pods), func() (string, error) {
		list, err := client.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=", Limit: 1})
		if err != nil || len(list.Items) == 0 {
			return "", err
		}
		return list.Items[0].Name + " has no node", nil
	})
}
