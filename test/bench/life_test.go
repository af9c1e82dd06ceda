package bench

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/simnode"
)

// phase is a part of a workload's life.
type phase struct {
	name string
	do   func(b *testing.B, client kubernetes.Interface)
}

// measureLife takes workloads of so many Pods through the phases, on a mesh of their own with simulated nodes. What it
// reports is by Pod; the nodes' own CPU time is not counted.
func measureLife(b *testing.B, nodes, pods int, phases ...phase) {
	b.Helper()
	m := newUnwatched(b)
	client := connect(b, m)
	ctx, stop := context.WithCancel(context.Background())
	simulated, err := simnode.Start(ctx, m.Admin(), simnode.Options{Names: createNodes(b, client, nodes)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stop(); simulated.Wait() })
	all := newMeter(b, m, mesh.APIServer, mesh.Scheduler, mesh.WorkloadControllers, mesh.PodGC)
	for _, p := range phases {
		b.Run(p.name, func(b *testing.B) {
			before := all.start()
			b.ResetTimer()
			p.do(b, client)
			b.StopTimer()
			all.report(b, before, pods, "pod")
			b.ReportMetric(float64(pods)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

func awaitNoPods(b *testing.B, client kubernetes.Interface) {
	b.Helper()
	awaitObjects(b, objects(client.CoreV1().RESTClient(), "pods"), &corev1.Pod{}, 0,
		func(*corev1.Pod) bool { return false })
}
