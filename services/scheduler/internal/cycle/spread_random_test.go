package cycle_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/scheduler/internal/groups"
)

// spread gives the Pod constraints.
func (g *generator) spread(p *corev1.Pod) {
	for range 1 + g.IntN(2) {
		c := corev1.TopologySpreadConstraint{MaxSkew: 1 + g.Int32N(3),
			TopologyKey:       pick(g, zone, zone, corev1.LabelHostname, "disk"),
			WhenUnsatisfiable: pick(g, corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: g.selector()}
		if g.chance(30) {
			c.NodeAffinityPolicy = new(pick(g, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
		}
		if g.chance(30) {
			c.NodeTaintsPolicy = new(pick(g, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
		}
		if g.chance(30) {
			c.MatchLabelKeys = []string{pick(g, "version", "none")}
		}
		if g.chance(20) && c.WhenUnsatisfiable == corev1.DoNotSchedule {
			c.MinDomains = new(1 + g.Int32N(4))
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func (g *generator) selector() *metav1.LabelSelector {
	switch g.IntN(6) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"db"}}}}
	case 2:
		return nil
	default:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(g, "web", "db")}}
	}
}

// belong gives the Pod what selectors and references of groups find.
func (g *generator) belong(p *corev1.Pod) {
	p.Labels = map[string]string{}
	if g.chance(80) {
		p.Labels["app"] = pick(g, "web", "db")
	}
	if g.chance(50) {
		p.Labels["version"] = pick(g, "1", "2")
	}
	if g.chance(10) {
		p.Namespace, p.Spec.Volumes = "other", nil // no claims there
	}
	if g.chance(50) {
		kind := pick(g, groups.ReplicaSet, groups.StatefulSet, groups.ReplicationController, "Job")
		owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: fmt.Sprintf("g%d", g.IntN(2)),
			Controller: new(g.chance(90))}
		if kind == groups.ReplicationController {
			owner.APIVersion = "v1"
		}
		p.OwnerReferences = []metav1.OwnerReference{owner}
	}
}

// group returns a Service or a controller.
func (g *generator) group() any {
	meta := metav1.ObjectMeta{Namespace: pick(g, "default", "default", "other"), Name: fmt.Sprintf("g%d", g.IntN(2))}
	simple := map[string]string{}
	if g.chance(90) {
		simple["app"] = pick(g, "web", "db")
	}
	if g.chance(30) {
		simple["version"] = pick(g, "1", "2")
	}
	selector := &metav1.LabelSelector{MatchLabels: simple}
	switch g.IntN(4) {
	case 0:
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector}}
	case 1:
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}}
	case 2:
		return &corev1.ReplicationController{ObjectMeta: meta,
			Spec: corev1.ReplicationControllerSpec{Selector: simple}}
	default:
		return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: simple}}
	}
}

// groupStep changes a Service or a controller.
func (w *world) groupStep() {
	o := w.gen.group()
	g, _ := groups.Of(o)
	if w.gen.chance(30) {
		delete(w.slow.groups, g.Name)
		w.fast.RemoveGroup(g.Name)
		return
	}
	w.slow.groups[g.Name] = o
	w.fast.SetGroup(g)
}
