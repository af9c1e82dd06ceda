package cycle_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/cycle"
)

// BenchmarkGangArrives has the Pods of a gang arrive one by one, as the API shows them, until all of them are there and
// bound. What one of them costs must not grow with their number.
func BenchmarkGangArrives(b *testing.B) {
	for _, members := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				c := benchCycle(members/100 + 1)
				c.SetPodGroup(gangOf("g", int32(members)), start)
				b.StartTimer()
				arrive(b, c, members)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*members), "ns/member")
		})
	}
}

func arrive(b *testing.B, c *cycle.Cycle, members int) {
	var placed []*corev1.Pod
	for i := range members {
		p := pod(fmt.Sprintf("g%d", i), "1m", inGroup("g"))
		c.SetPod(p, start)
		c.Unschedulable(p.UID)
		for v, ok := c.Next(start); ok; v, ok = c.Next(start) {
			bound := v.Pod.DeepCopy()
			bound.Spec.NodeName = v.Node
			placed = append(placed, bound)
		}
	}
	if len(placed) != members || placed[0].Spec.NodeName == "" {
		b.Fatalf("%d of %d are placed", len(placed), members)
	}
	for _, p := range placed {
		c.SetPod(p, start)
	}
}

// BenchmarkGangPreempts has a gang of which each Pod takes the room of another on 500 full nodes: all that is decided,
// until the plans are there.
func BenchmarkGangPreempts(b *testing.B) {
	const nodes = 500
	for _, members := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				c := benchCycle(nodes)
				for i := range 4 * nodes {
					c.SetPod(ranked(benchPod(i, 1), 0, fmt.Sprintf("node-%06d", i%nodes)), start)
				}
				for i := range members {
					p := ranked(pod(fmt.Sprintf("g%d", i), "1", inGroup("g")), 1000, "")
					c.SetPod(p, start)
				}
				b.StartTimer()
				c.SetPodGroup(gangOf("g", int32(members), ofPriority(1000)), start)
				victims := 0
				for v, ok := c.Next(start); ok; v, ok = c.Next(start) {
					if v.Plan != nil {
						victims += len(v.Plan.Victims)
					}
				}
				if victims != members {
					b.Fatalf("%d members have %d victims", members, victims)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*members), "ns/member")
		})
	}
}
