package cycle_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/groups"
	"keelson.dev/services/scheduler/internal/rulestest"
)

func benchNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%06d", i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3),
			corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("32Gi"),
			corev1.ResourcePods:             resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		}},
	}
}

// benchPod returns the i-th Pod; Pods of equal i modulo classes are alike.
func benchPod(i, classes int) *corev1.Pod {
	uid := fmt.Sprintf("pod-%08d", i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Name: "c",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(100+i%classes), resource.DecimalSI),
					corev1.ResourceMemory: resource.MustParse("500Mi"),
				}}}},
		},
	}
}

func benchCycle(nodes int) *cycle.Cycle {
	settings := config.Default()
	c := cycle.New(cycle.Config{Profiles: settings.Profiles, Backoff: settings.Backoff, Seed: 1})
	c.Lead(corev1.DefaultSchedulerName, true, time.Time{})
	for i := range nodes {
		c.SetNode(benchNode(i))
	}
	return c
}

// benchPlace measures everything that the Cycle does for a Pod: it enqueues it, decides on it, reserves its node and
// sees it bound. For each one the oldest is deleted, so that the nodes stay as full as they are.
func benchPlace(b *testing.B, c *cycle.Cycle, nodes int, pod func(i int) *corev1.Pod) {
	fill := nodes * 15
	if fill > 100_000 {
		fill = 100_000
	}
	placed := make([]*corev1.Pod, 0, fill)
	place := func(p *corev1.Pod) string {
		c.SetPod(p, time.Time{})
		v, ok := c.Next(time.Time{})
		if !ok || v.Node == "" {
			b.Fatalf("pod %s was not placed: %s", p.Name, v.Message())
		}
		return v.Node
	}
	for i := range fill {
		p := pod(i)
		p.Spec.NodeName = place(p)
		c.SetPod(p, time.Time{})
		placed = append(placed, p)
	}
	pods := make([]*corev1.Pod, 0, b.N)
	for i := range b.N {
		pods = append(pods, pod(fill+i))
	}
	runtime.GC()
	b.ResetTimer()
	for i, p := range pods {
		p.Spec.NodeName = place(p)
		c.SetPod(p, time.Time{})
		c.RemovePod(placed[i%fill])
		placed[i%fill] = p
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/float64(b.N), "us/pod")
}

func BenchmarkPlaceIdentical(b *testing.B) {
	for _, nodes := range []int{1_000, 5_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			benchPlace(b, benchCycle(nodes), nodes, func(i int) *corev1.Pod { return benchPod(i, 1) })
		})
	}
}

func BenchmarkPlaceMixed(b *testing.B) {
	for _, nodes := range []int{1_000, 5_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d/classes=50", nodes), func(b *testing.B) {
			benchPlace(b, benchCycle(nodes), nodes, func(i int) *corev1.Pod { return benchPod(i, 50) })
		})
	}
}

// BenchmarkPlaceShapes measures Pods of 1,000 shapes in turn, and what the Cycle keeps for them all.
func BenchmarkPlaceShapes(b *testing.B) {
	const nodes, shapes = 5_000, 1_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := benchCycle(nodes)
	benchPlace(b, c, nodes/50, func(i int) *corev1.Pod { return benchPod(i, shapes) })
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
	runtime.KeepAlive(c)
}

// BenchmarkPlaceSpread measures Pods that spread over zones and hosts, by constraints of their own that demand it or
// prefer it, or by the defaults for the Pods of a Service.
func BenchmarkPlaceSpread(b *testing.B) {
	for name, change := range map[string]func(*corev1.Pod){
		"hard": func(p *corev1.Pod) {
			rulestest.Spreading(zone, 1, corev1.DoNotSchedule, "app", "web")(p)
			rulestest.Spreading(corev1.LabelHostname, 3, corev1.DoNotSchedule, "app", "web")(p)
		},
		"soft": func(p *corev1.Pod) {
			rulestest.Spreading(zone, 1, corev1.ScheduleAnyway, "app", "web")(p)
			rulestest.Spreading(corev1.LabelHostname, 3, corev1.ScheduleAnyway, "app", "web")(p)
		},
		"defaults": func(*corev1.Pod) {},
	} {
		for _, nodes := range []int{1_000, 5_000, 100_000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", name, nodes), func(b *testing.B) {
				c := benchCycle(nodes)
				c.SetGroup(groups.Group{Name: groups.Name{Kind: groups.Service,
					NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}},
					Labels: map[string]string{"app": "web"}})
				benchPlace(b, c, nodes, func(i int) *corev1.Pod {
					p := benchPod(i, 1)
					rulestest.Labelling("app", "web")(p)
					change(p)
					return p
				})
			})
		}
	}
}

// BenchmarkPlaceSociable measures Pods of required anti-affinity by host, of which one goes to each node, and Pods that
// prefer the zones of others.
func BenchmarkPlaceSociable(b *testing.B) {
	prefer := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 10,
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: zone, LabelSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"app": "web"}}}}}}}
	}
	for _, nodes := range []int{1_000, 5_000, 100_000} {
		b.Run(fmt.Sprintf("preferred/nodes=%d", nodes), func(b *testing.B) {
			benchPlace(b, benchCycle(nodes), nodes, func(i int) *corev1.Pod {
				p := benchPod(i, 1)
				rulestest.Labelling("app", "web")(p)
				prefer(p)
				return p
			})
		})
		b.Run(fmt.Sprintf("apart/nodes=%d", nodes), func(b *testing.B) {
			benchPlace(b, benchCycle(nodes), nodes, func(i int) *corev1.Pod {
				p := benchPod(i, 1)
				group := fmt.Sprint(i * 2 / nodes)
				rulestest.Labelling("app", group)(p)
				rulestest.AntiAffinity(corev1.LabelHostname, "app", group)(p)
				return p
			})
		})
	}
}

// BenchmarkRefuse measures a Pod that fits nowhere: its verdict counts the reasons of all nodes.
func BenchmarkRefuse(b *testing.B) {
	for _, nodes := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := benchCycle(nodes)
			pods := make([]*corev1.Pod, b.N)
			for i := range pods {
				pods[i] = benchPod(i, 1)
				pods[i].Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("64")
			}
			b.ResetTimer()
			for _, p := range pods {
				c.SetPod(p, time.Time{})
				if v, ok := c.Next(time.Time{}); !ok || v.Node != "" {
					b.Fatal("a pod that fits nowhere was placed")
				}
			}
		})
	}
}

// BenchmarkUpdateNode measures a node's change and the next decision, which has to see it.
func BenchmarkUpdateNode(b *testing.B) {
	for _, nodes := range []int{1_000, 5_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := benchCycle(nodes)
			changed := [2]*corev1.Node{benchNode(0), benchNode(0)}
			changed[1].Spec.Unschedulable = true
			i := 0
			for b.Loop() {
				c.SetNode(changed[i%2])
				p := benchPod(i, 1)
				c.SetPod(p, time.Time{})
				if v, ok := c.Next(time.Time{}); !ok || v.Node == "" {
					b.Fatal("not placed")
				}
				c.RemovePod(p)
				i++
			}
		})
	}
}

// BenchmarkMemory reports what a node costs in the Cycle, with one class that has judged it.
func BenchmarkMemory(b *testing.B) {
	const nodes = 100_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		c := benchCycle(nodes)
		c.SetPod(benchPod(0, 1), time.Time{})
		if _, ok := c.Next(time.Time{}); !ok {
			b.Fatal("nothing to decide")
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/nodes, "B/node")
		runtime.KeepAlive(c)
	}
}
