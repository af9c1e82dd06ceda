package cycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
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

// BenchmarkPreemptCold measures the plan for the first Pod of a kind, for which each of 5,000 full nodes is tried: one
// that looks at no domains, and one that is kept apart from its like.
func BenchmarkPreemptCold(b *testing.B) {
	for name, change := range map[string]func(*corev1.Pod){"plain": func(*corev1.Pod) {}, "domains": apartFrom("x")} {
		b.Run(name, func(b *testing.B) {
			const nodes = 5_000
			c := benchCycle(nodes)
			for i := range 4 * nodes {
				c.SetPod(ranked(benchPod(i, 1), 0, fmt.Sprintf("node-%06d", i%nodes)), time.Time{})
			}
			for i := range b.N {
				p := ranked(benchPod(1_000_000+i, 1), int32(1+i), "")
				change(p)
				b.StopTimer()
				c.SetPod(p, time.Time{})
				b.StartTimer()
				if v, ok := c.Next(time.Time{}); !ok || v.Plan == nil {
					b.Fatalf("pod %s has no victim: %s", p.Name, v.Message())
				}
				b.StopTimer()
				c.RemovePod(p)
				b.StartTimer()
			}
		})
	}
}

// BenchmarkPreemptAcross measures the plan for a Pod that Pods of its zone keep from each of 5,000 nodes in three
// zones, of which most are left out where there are many such Pods.
func BenchmarkPreemptAcross(b *testing.B) {
	settings := config.Default()
	settings.Profiles[0].PreemptsAcross = true
	for _, pods := range []int{30, 300, 3_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: 1})
			c.Lead(corev1.DefaultSchedulerName, true, time.Time{})
			for i := range 5_000 {
				c.SetNode(benchNode(i))
			}
			for i := range pods {
				p := ranked(benchPod(i, 1), 0, fmt.Sprintf("node-%06d", i))
				p.Labels = map[string]string{"app": "x"}
				c.SetPod(p, time.Time{})
			}
			untried := 0
			for i := range b.N {
				p := ranked(benchPod(1_000_000+i, 1), 1, "")
				apartFrom("x")(p)
				c.SetPod(p, time.Time{})
				v, ok := c.Next(time.Time{})
				if !ok || v.Plan == nil {
					b.Fatalf("pod %s has no victim: %s", p.Name, v.Message())
				}
				untried = v.Untried
				var spared []types.UID
				for _, victim := range v.Plan.Victims {
					spared = append(spared, victim.UID)
				}
				c.Evicted(p.UID, spared, nil, time.Time{})
				c.RemovePod(p)
			}
			b.ReportMetric(float64(untried), "nodes-untried")
		})
	}
}
