package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/mesh/simnode"
)

// idleFor is how long the idle mesh is watched.
const idleFor = 30 * time.Second

// BenchmarkIdle measures a mesh of one node that has nothing to do. The runtime's containerd is not ours and is not
// counted.
func BenchmarkIdle(b *testing.B) {
	m := processes.New(b, 1)
	reportIdle(b, newMeter(b, m, mesh.Daemons...))
}

// BenchmarkIdlePods measures a nodeagent whose Pods do nothing.
func BenchmarkIdlePods(b *testing.B) {
	const atOnce = 50
	m := processes.New(b, 1)
	m.Restart(b, mesh.NodeAgent, "--max-pods=250")
	client, there := connect(b, m), 0
	for _, pods := range []int{0, 100, 250} {
		for there < pods {
			var more []*corev1.Pod
			for range min(atOnce, pods-there) {
				idle := pod(there)
				idle.Spec.Containers[0].Resources = corev1.ResourceRequirements{} // room on any machine
				more, there = append(more, idle), there+1
			}
			startPods(b, client, more)
		}
		b.Run(fmt.Sprint("pods=", pods), func(b *testing.B) { reportIdle(b, newMeter(b, m, mesh.NodeAgent)) })
	}
}

// BenchmarkHeartbeats measures what 5,000 nodes cost that do nothing but say every 10 s that they live: the writes of
// their Leases, and podgc's look at who is silent.
func BenchmarkHeartbeats(b *testing.B) {
	const (
		nodes    = 5000
		interval = 10 * time.Second
	)
	m := processes.New(b, 0)
	client := connect(b, m)
	names := createNodes(b, client, nodes)
	ctx, stop := context.WithCancel(context.Background())
	simulated, err := simnode.Start(ctx, m.Admin(), simnode.Options{Names: names, Renew: interval})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stop(); simulated.Wait() })
	await(b, "the first heartbeat of each node", func() (string, error) {
		list, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		if len(list.Items) < nodes {
			return fmt.Sprintf("%d Leases", len(list.Items)), nil
		}
		return "", nil
	})
	reportIdle(b, newMeter(b, m, mesh.APIServer, mesh.Scheduler, mesh.WorkloadControllers, mesh.PodGC))
}

// reportIdle gives the memory and the CPU of daemons over a time in which nothing is asked of them.
func reportIdle(b *testing.B, all *meter) {
	b.Helper()
	all.settle()
	before := all.now()
	b.ResetTimer()
	time.Sleep(idleFor)
	b.StopTimer()
	after := all.now()
	total := 0.0
	for d, mib := range all.memoryMiB("VmRSS") {
		b.ReportMetric(mib, fmt.Sprintf("%s-MiB", d))
		b.ReportMetric(100*(after[d]-before[d]).Seconds()/idleFor.Seconds(), fmt.Sprintf("%s-cpu-percent", d))
		total += mib
	}
	b.ReportMetric(total, "all-MiB")
	b.ReportMetric(100*(after.sum()-before.sum()).Seconds()/idleFor.Seconds(), "all-cpu-percent")
}
