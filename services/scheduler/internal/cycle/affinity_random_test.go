package cycle_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sociable gives the Pod terms about other Pods.
func (g *generator) sociable(p *corev1.Pod) {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	terms := func(percent int) (out []corev1.PodAffinityTerm) {
		for g.chance(percent) {
			out = append(out, g.podTerm())
		}
		return out
	}
	weighted := func(percent int) (out []corev1.WeightedPodAffinityTerm) {
		for g.chance(percent) {
			out = append(out, corev1.WeightedPodAffinityTerm{Weight: 1 + g.Int32N(100), PodAffinityTerm: g.podTerm()})
		}
		return out
	}
	if g.chance(50) {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(30),
			PreferredDuringSchedulingIgnoredDuringExecution: weighted(40)}
	}
	if g.chance(50) {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  terms(30),
			PreferredDuringSchedulingIgnoredDuringExecution: weighted(40)}
	}
}

func (g *generator) podTerm() corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: pick(g, zone, corev1.LabelHostname, corev1.LabelHostname, "disk"),
		LabelSelector: g.selector()}
	if g.chance(20) {
		t.Namespaces = []string{pick(g, "default", "other")}
	}
	if g.chance(30) {
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": pick(g, "x", "y")}}
		if g.chance(30) {
			t.NamespaceSelector = &metav1.LabelSelector{}
		}
	}
	if g.chance(20) {
		t.MatchLabelKeys = []string{pick(g, "version", "none")}
	}
	if g.chance(10) {
		t.MismatchLabelKeys = []string{"app"}
	}
	return t
}

// namespaceStep relabels a namespace.
func (w *world) namespaceStep() {
	name, labels := pick(w.gen, "default", "other"), map[string]string{}
	if w.gen.chance(70) {
		labels["team"] = pick(w.gen, "x", "y")
	}
	w.slow.namespaces[name] = labels
	w.fast.SetNamespace(name, labels)
}

// relabel changes the labels of a Pod, or begins to delete one with a node.
func (w *world) relabel() {
	from := w.waiting
	if w.gen.chance(50) {
		from = w.slow.Pods
	}
	uid, ok := anyKey(w.gen, from)
	if !ok || w.flying[uid] != nil {
		return
	}
	p := from[uid].DeepCopy()
	p.Labels["app"] = pick(w.gen, "web", "db")
	if p.Spec.NodeName != "" && w.gen.chance(30) {
		p.DeletionTimestamp = &metav1.Time{Time: w.now}
	}
	from[uid] = p
	w.fast.SetPod(p, w.now)
}
