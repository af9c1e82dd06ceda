package cycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/scheduler/internal/rulestest"
)

// What rules look at in the Pods of TestAPlacementChangesOneNode.
var looks = map[string]func(*corev1.Pod){
	"nothing but room": func(*corev1.Pod) {},
	"node affinity and taints": func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	},
	"ports": func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	},
	"images":             func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:1" },
	"zone spread":        rulestest.Spreading(zone, 1, corev1.DoNotSchedule, "app", "web"),
	"host spread":        rulestest.Spreading(corev1.LabelHostname, 1, corev1.ScheduleAnyway, "app", "web"),
	"host anti-affinity": rulestest.AntiAffinity(corev1.LabelHostname, "app", "web"),
	"preferred affinity": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 10,
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: zone, LabelSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"app": "web"}}}}}}}
	},
	"a claim": func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}}}
	},
}

// A decision judges the nodes that changed since the last one of its kind. Whatever a Pod looks at, to place it and to
// see it bound changes its own node alone, as often among 100 nodes as among 1,000.
func TestAPlacementChangesOneNode(t *testing.T) {
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			const most = 4
			few, many := changesOf(t, 100, look), changesOf(t, 1000, look)
			if few != many || many > most {
				t.Errorf("a placement changes %d of 100 nodes and %d of 1,000, want the same and %d at most", few,
					many, most)
			}
		})
	}
}

// changesOf returns how often nodes change by the last placement of some.
func changesOf(t *testing.T, nodes int, look func(*corev1.Pod)) (changes uint64) {
	t.Helper()
	f := &fixture{Cycle: benchCycle(nodes), t: t, now: start}
	f.having([]string{"a"})
	for i := range 20 {
		p := benchPod(i, 1)
		rulestest.Labelling("app", "web")(p)
		look(p)
		before := f.State().Version()
		f.SetPod(p, time.Time{})
		v, ok := f.Next(time.Time{})
		if !ok || v.Node == "" {
			t.Fatalf("a Pod was not placed: %s", v.Message())
		}
		bound := p.DeepCopy()
		bound.Spec.NodeName = v.Node
		f.SetPod(bound, time.Time{})
		changes = f.State().Version() - before
	}
	return changes
}
