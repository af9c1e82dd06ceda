package cycle_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rulestest"
)

// BenchmarkPlaceAmongNominees measures Pods that spread over zones where others are nominated for nodes: Pods that
// their constraint counts, or none of them.
func BenchmarkPlaceAmongNominees(b *testing.B) {
	const nodes = 5_000
	for _, app := range []string{"other", "web"} {
		for _, nominees := range []int{0, 100, 1_000} {
			b.Run(fmt.Sprintf("%s=%d", app, nominees), func(b *testing.B) {
				c := benchCycle(nodes)
				for i := range nominees {
					p := ranked(benchPod(10_000_000+i, 1), 1000, "")
					rulestest.Labelling("app", app)(p)
					p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "held"}} // never tried
					p.Status.NominatedNodeName = fmt.Sprintf("node-%06d", i)
					c.SetPod(p, time.Time{})
				}
				benchPlace(b, c, nodes/50, func(i int) *corev1.Pod {
					p := benchPod(i, 1)
					rulestest.Labelling("app", "web")(p)
					rulestest.Spreading(zone, 1, corev1.DoNotSchedule, "app", "web")(p)
					return p
				})
			})
		}
	}
}
