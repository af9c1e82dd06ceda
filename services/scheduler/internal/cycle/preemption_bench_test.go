package cycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// BenchmarkPreempt measures all that the Cycle does for a Pod that takes the room of another on full nodes: the plan,
// the end of the victim, the placement. The first of a kind looks at every node, the others at what changed.
func BenchmarkPreempt(b *testing.B) {
	for _, nodes := range []int{500, 5_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := benchCycle(nodes)
			for i := range 4 * nodes {
				c.SetPod(ranked(benchPod(i, 1), 0, fmt.Sprintf("node-%06d", i%nodes)), time.Time{})
			}
			preempt := func(i int) {
				p := ranked(benchPod(i, 1), 1000, "")
				c.SetPod(p, time.Time{})
				v, ok := c.Next(time.Time{})
				if !ok || v.Plan == nil || len(v.Plan.Victims) != 1 {
					b.Fatalf("pod %s has no victim: %s", p.Name, v.Message())
				}
				victim := leaving(v.Plan.Victims[0])
				c.SetPod(victim, time.Time{})
				c.Evicted(p.UID, nil, nil, time.Time{})
				c.RemovePod(victim)
				if v, ok = c.Next(time.Time{}); !ok || v.Node == "" {
					b.Fatalf("pod %s did not get the room: %s", p.Name, v.Message())
				}
				c.RemovePod(p)
				c.SetPod(ranked(benchPod(i+5*nodes, 1), 0, v.Node), time.Time{})
			}
			preempt(100_000)
			b.ResetTimer()
			before := cpuTime(b)
			for i := range b.N {
				preempt(1_000_000 + 5*nodes*(2*i))
			}
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/pod")
		})
	}
}

// ranked makes a Pod of one CPU one of a priority, on a node if there is one.
func ranked(p *corev1.Pod, priority int32, node string) *corev1.Pod {
	p.Spec.Priority, p.Spec.NodeName = &priority, node
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	return p
}
