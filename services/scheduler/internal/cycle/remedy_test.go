package cycle_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/remedy"
)

// withChange returns how the reference judges a Pod after a change of it or of a node: the nodes that can take it.
func (c *cluster) withChange(p *corev1.Pod, change remedy.Change) []string {
	changed := p.DeepCopy()
	requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}).DeepCopy()
	for _, l := range change.Less {
		left := requests[l.Name]
		left.Sub(l.Quantity())
		requests[l.Name] = left
	}
	changed.Spec.InitContainers, changed.Spec.Overhead, changed.Spec.Resources = nil, nil, nil
	changed.Spec.Containers = []corev1.Container{{Name: "all", Ports: slices.DeleteFunc(hostPorts(p),
		func(port corev1.ContainerPort) bool {
			for _, gone := range change.Ports {
				same := gone.IP == port.HostIP || anyAddress(gone.IP) && anyAddress(port.HostIP)
				if gone.Number == port.HostPort && gone.Protocol == port.Protocol && same {
					return true
				}
			}
			return false
		}), Resources: corev1.ResourceRequirements{Requests: requests}}}
	changed.Spec.Tolerations = slices.Concat(p.Spec.Tolerations, change.Tolerations)
	if change.Node == "" {
		return slices.Sorted(maps.Keys(c.Judge(changed).Scores))
	}
	before := c.Nodes[change.Node]
	defer func() { c.Nodes[change.Node] = before }()
	node := before.DeepCopy()
	for _, l := range change.Labels {
		if node.Labels[l.Key] = l.Value; l.Gone {
			delete(node.Labels, l.Key)
		}
	}
	if change.Uncordon {
		node.Spec.Unschedulable = false
	}
	c.Nodes[change.Node] = node
	return slices.Sorted(maps.Keys(c.Judge(changed).Scores))
}

// smaller returns the changes that do one thing less, or one unit of a resource less.
func smaller(change remedy.Change) (out []remedy.Change) {
	for i, l := range change.Less {
		less := change
		less.Less = slices.Clone(change.Less)
		less.Less[i].Amount = l.Amount - 1
		out = append(out, less)
	}
	for i := range change.Ports {
		less := change
		less.Ports = slices.Delete(slices.Clone(change.Ports), i, i+1)
		out = append(out, less)
	}
	for i := range change.Tolerations {
		less := change
		less.Tolerations = slices.Delete(slices.Clone(change.Tolerations), i, i+1)
		out = append(out, less)
	}
	for i := range change.Labels {
		less := change
		less.Labels = slices.Delete(slices.Clone(change.Labels), i, i+1)
		out = append(out, less)
	}
	if change.Uncordon {
		less := change
		less.Uncordon = false
		out = append(out, less)
	}
	return out
}

// With each change that is proposed the Pod fits on just the nodes that are named, and with none that is smaller; and
// the nodes without findings are those that can take the Pod. The reference judges.
func TestProposedChangesHelpAndNoSmallerOneDoes(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(16) {
		w := newWorld(t, seed)
		for range 60 {
			w.step()
			if w.gen.chance(30) {
				w.checkNoneForgotten()
			}
			w.drain()
			for _, uid := range sorted(w.waiting) {
				w.checkRemedy(w.waiting[uid], kinds)
			}
		}
	}
	for _, kind := range []string{"less", "ports", "tolerations", "labels", "uncordon", "two"} {
		if kinds[kind] < 20 {
			t.Errorf("%d changes are of kind %q, too few to learn from: %v", kinds[kind], kind, kinds)
		}
	}
}

func (w *world) checkRemedy(p *corev1.Pod, kinds map[string]int) {
	w.t.Helper()
	report := w.fast.Survey(p.UID)
	can := slices.Sorted(maps.Keys(w.slow.Judge(p).Scores))
	seen := 0
	for _, g := range report.Groups {
		seen += len(g.Nodes)
		if len(g.Findings) == 0 && !slices.Equal(g.Nodes, can) {
			w.t.Fatalf("pod %s: nothing speaks against %v, want %v", p.Name, g.Nodes, can)
		}
	}
	if seen != len(w.slow.Nodes) || report.Feasible() != (len(can) > 0) || len(can) > 0 && len(report.Changes) > 0 {
		w.t.Fatalf("pod %s: %d nodes in %+v, want %d; %v can take it", p.Name, seen, report, len(w.slow.Nodes), can)
	}
	for _, change := range report.Changes {
		fits := w.slow.withChange(p, change)
		if !slices.Equal(fits, change.Fits) || len(fits) == 0 {
			w.t.Fatalf("pod %s with %q fits on %v, want %v", p.Name, change, fits, change.Fits)
		}
		for _, less := range smaller(change) {
			if fits := w.slow.withChange(p, less); len(fits) > 0 {
				w.t.Fatalf("pod %s fits on %v with %q already, %q is proposed", p.Name, fits, less, change)
			}
		}
		note(kinds, change)
	}
}

func note(kinds map[string]int, change remedy.Change) {
	parts := 0
	for kind, n := range map[string]int{"less": len(change.Less), "ports": len(change.Ports),
		"tolerations": len(change.Tolerations), "labels": len(change.Labels)} {
		kinds[kind] += min(n, 1)
		parts += min(n, 1)
	}
	if change.Uncordon {
		kinds["uncordon"]++
		parts++
	}
	if parts > 1 {
		kinds["two"]++
	}
}

// BenchmarkExplain measures what an explanation of a Pod costs that fits on none of 5,000 nodes, of which some are
// tainted, some cordoned and all too small.
func BenchmarkExplain(b *testing.B) {
	c := benchCycle(0)
	for i := range 5_000 {
		n := benchNode(i)
		switch i % 10 {
		case 0:
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: fmt.Sprint(i % 50),
				Effect: corev1.TaintEffectNoSchedule}}
		case 1:
			n.Spec.Unschedulable = true
		}
		c.SetNode(n)
	}
	explainTooLarge(b, c)
}

func explainTooLarge(b *testing.B, c *cycle.Cycle) {
	b.Helper()
	p := ranked(benchPod(1, 1), 1000, "")
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("5")
	p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-1"}
	c.SetPod(p, time.Time{})
	c.Next(time.Time{})
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	b.ResetTimer()
	for range b.N {
		if e, ok := c.Explain(name); !ok || len(e.Facts) < 4 {
			b.Fatalf("says %+v", e)
		}
	}
}
