package bench

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

const (
	// wishNodes is how many nodes there are for Pods with wishes, wishPods how many Pods have each.
	wishNodes, wishPods = 5000, 10_000
	// backlogPods is how many Pods fit nowhere while backlogChanges nodes change.
	backlogPods, backlogChanges = 10_000, 500
	// pinnedNodes is how many nodes get one Pod that asks for them by name.
	pinnedNodes = 15_000
	// zones is how many zones the nodes are in.
	zones = 10
)

// wishes are what Pods ask of the place that they get.
var wishes = []struct {
	name string
	of   func(i int, p *corev1.Pod)
}{
	{"ZoneSpread", func(_ int, p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
			TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: alike(p)}}
	}},
	{"AntiAffinity", func(i int, p *corev1.Pod) {
		p.Labels["group"] = fmt.Sprint(i * 2 / wishPods) // a Pod of each on every node
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: alike(p)}}}}
	}},
	{"PreferredAffinity", func(_ int, p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 10,
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone,
					LabelSelector: alike(p)}}}}}
	}},
	{"Shapes", func(i int, p *corev1.Pod) { ask(p, fmt.Sprintf("%dm", 10+i%1000)) }},
}

func alike(p *corev1.Pod) *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: p.Labels} }

func ask(p *corev1.Pod, cpu string) {
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = quantity(cpu)
}

// schedulingMesh is a mesh of nodes without an agent.
type schedulingMesh struct {
	*processes.Mesh
	client kubernetes.Interface
	nodes  []string
}

func newSchedulingMesh(b *testing.B, nodes int) *schedulingMesh {
	b.Helper()
	m := &schedulingMesh{Mesh: newUnwatched(b)}
	m.client = connect(b, m)
	m.nodes = createNodes(b, m.client, nodes)
	return m
}

// label sets a label of a node.
func (m *schedulingMesh) label(ctx context.Context, node, key, value string) error {
	_, err := m.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value), metav1.PatchOptions{})
	return err
}

// create creates Pods, labelled alike.
func (m *schedulingMesh) create(b *testing.B, app string, n int, change func(i int, p *corev1.Pod)) {
	b.Helper()
	each(b, n, func(ctx context.Context, i int) error {
		p := pod(i)
		p.Name, p.Labels = fmt.Sprintf("%s-%05d", app, i), map[string]string{"app": app}
		change(i, p)
		_, err := m.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
}

// await waits until each of the Pods is done.
func (m *schedulingMesh) await(b *testing.B, app string, n int, done func(*corev1.Pod) bool) {
	b.Helper()
	source := cache.NewFilteredListWatchFromClient(m.client.CoreV1().RESTClient(), "pods", namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = "app=" + app })
	awaitObjects(b, source, &corev1.Pod{}, n, done)
}

func hasNode(p *corev1.Pod) bool { return p.Spec.NodeName != "" }

func isRefused(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// measure reports what the daemons use for as many units of work.
func (m *schedulingMesh) measure(b *testing.B, name string, units int, unit string, work func(b *testing.B)) {
	b.Run(name, func(b *testing.B) {
		all := newMeter(b, m.Mesh, mesh.APIServer, mesh.Scheduler, mesh.WorkloadControllers, mesh.PodGC)
		before := all.start()
		b.ResetTimer()
		work(b)
		b.StopTimer()
		all.settle()
		all.report(b, before, units, unit)
	})
}

// place measures how Pods get a node, from their creation to their binding.
func (m *schedulingMesh) place(b *testing.B, name, app string, n int, change func(i int, p *corev1.Pod)) {
	m.measure(b, name, n, "pod", func(b *testing.B) {
		m.create(b, app, n, change)
		m.await(b, app, n, hasNode)
	})
}

// BenchmarkScheduling measures Pods with wishes, one kind after the other on the same nodes, and then Pods that fit on
// no node, at their creation and while nodes change.
func BenchmarkScheduling(b *testing.B) {
	m := newSchedulingMesh(b, wishNodes)
	each(b, wishNodes, func(ctx context.Context, i int) error {
		return m.label(ctx, m.nodes[i], corev1.LabelTopologyZone, fmt.Sprintf("zone-%d", i%zones))
	})
	for i, wish := range wishes {
		m.place(b, wish.name, fmt.Sprintf("wish-%d", i), wishPods, wish.of)
	}
	m.measure(b, "Backlog", backlogPods, "pod", func(b *testing.B) {
		m.create(b, "large", backlogPods, func(i int, p *corev1.Pod) { ask(p, fmt.Sprint(64+i%100)) })
		m.await(b, "large", backlogPods, isRefused)
	})
	m.measure(b, "BacklogChurn", backlogChanges, "change", func(b *testing.B) {
		each(b, backlogChanges, func(ctx context.Context, i int) error {
			return m.label(ctx, m.nodes[i%wishNodes], "example.com/round", fmt.Sprint(i))
		})
	})
}

// BenchmarkPinned measures Pods that ask for one node each by name, as a DaemonSet's do.
func BenchmarkPinned(b *testing.B) {
	m := newSchedulingMesh(b, pinnedNodes)
	m.place(b, fmt.Sprintf("nodes=%d", pinnedNodes), "pinned", pinnedNodes, func(i int, p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
					Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{m.nodes[i]}}}}}}}}
	})
}

// BenchmarkPreemption measures Pods that take the room of others, on nodes that one Pod each fills.
func BenchmarkPreemption(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{500, 500}, {5000, 1000}} {
		m := newSchedulingMesh(b, size.nodes)
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}
		if _, err := m.client.SchedulingV1().PriorityClasses().Create(b.Context(), class,
			metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		m.create(b, "filler", size.nodes, func(i int, p *corev1.Pod) {
			ask(p, "4")
			p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = m.nodes[i], new(int64)
		})
		m.place(b, fmt.Sprintf("nodes=%d", size.nodes), "urgent", size.pods, func(_ int, p *corev1.Pod) {
			ask(p, "4")
			p.Spec.PriorityClassName = "urgent"
		})
	}
}
