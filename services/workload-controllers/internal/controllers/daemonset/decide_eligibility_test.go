package daemonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func spec(change func(*corev1.PodSpec)) func(*appsv1.DaemonSet) {
	return func(set *appsv1.DaemonSet) { change(&set.Spec.Template.Spec) }
}

// affine asks for nodes by terms, of which one must match.
func affine(terms ...corev1.NodeSelectorTerm) func(*appsv1.DaemonSet) {
	return spec(func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	})
}

func byLabel(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator,
		Values: values}}}
}

func byName(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name",
		Operator: operator, Values: values}}}
}

func TestWhichNodesItIsFor(t *testing.T) {
	ssd := spec(func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{"disk": "ssd"} })
	tolerating := func(tolerations ...corev1.Toleration) func(*appsv1.DaemonSet) {
		return spec(func(spec *corev1.PodSpec) { spec.Tolerations = tolerations })
	}
	labelled := func(node *corev1.Node, disk string) *corev1.Node {
		node.Labels["disk"] = disk
		return node
	}
	const controlPlane = "node-role.kubernetes.io/control-plane"
	for _, c := range []struct {
		name   string
		change func(*appsv1.DaemonSet)
		node   *corev1.Node
		want   verdict
	}{
		{name: "SET-128 any", node: newNode("n1"), want: runs},
		{name: "SET-126 that the node selector matches", change: ssd, node: labelled(newNode("n1"), "ssd"), want: runs},
		{name: "SET-126 not that it does not match", change: ssd, node: labelled(newNode("n1"), "hdd"), want: unfit},
		{name: "SET-127 that a term matches", change: affine(byLabel("disk", corev1.NodeSelectorOpIn, "hdd"),
			byLabel("disk", corev1.NodeSelectorOpExists)), node: labelled(newNode("n1"), "ssd"), want: runs},
		{name: "SET-127 not that none matches", change: affine(byLabel("disk", corev1.NodeSelectorOpNotIn, "ssd")),
			node: labelled(newNode("n1"), "ssd"), want: unfit},
		{name: "SET-127 by name", change: affine(byName(corev1.NodeSelectorOpIn, "n1")), node: newNode("n1"),
			want: runs},
		{name: "SET-127 not by another name", change: affine(byName(corev1.NodeSelectorOpIn, "n1")),
			node: newNode("n2"), want: unfit},
		{name: "SET-127 by name, but not this", change: affine(byName(corev1.NodeSelectorOpNotIn, "n1")),
			node: newNode("n1"), want: unfit},
		{name: "preferences exclude none", node: newNode("n1"), want: runs, change: spec(func(spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1,
					Preference: byLabel("disk", corev1.NodeSelectorOpExists)}}}}
		})},
		{name: "terms that cannot be read match none", change: affine(byLabel("disk", "Near", "ssd")),
			node: newNode("n1"), want: unfit},
		{name: "the one that the template names", node: newNode("n1"), want: runs,
			change: spec(func(spec *corev1.PodSpec) { spec.NodeName = "n1" })},
		{name: "no other than the template names", node: newNode("n2"), want: unfit,
			change: spec(func(spec *corev1.PodSpec) { spec.NodeName = "n1" })},

		{name: "SET-124 not with a taint", node: newNode("n1", corev1.Taint{Key: controlPlane,
			Effect: corev1.TaintEffectNoSchedule}), want: keeps},
		{name: "SET-123 with a taint that the template tolerates", change: tolerating(corev1.Toleration{
			Key: controlPlane, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}),
			node: newNode("n1", corev1.Taint{Key: controlPlane, Effect: corev1.TaintEffectNoSchedule}), want: runs},
		{name: "a taint that evicts leaves no Pod", node: newNode("n1", corev1.Taint{Key: "broken",
			Effect: corev1.TaintEffectNoExecute}), want: unfit},
		{name: "also beside one that does not", node: newNode("n1", corev1.Taint{Key: "broken",
			Effect: corev1.TaintEffectNoExecute}, corev1.Taint{Key: "full", Effect: corev1.TaintEffectNoSchedule}),
			want: unfit},
		{name: "in any order", node: newNode("n1", corev1.Taint{Key: "full", Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: "broken", Effect: corev1.TaintEffectNoExecute}), want: unfit},
		{name: "a preference is none", node: newNode("n1", corev1.Taint{Key: "busy",
			Effect: corev1.TaintEffectPreferNoSchedule}), want: runs},

		{name: "SET-137 SET-146 one that is not ready", node: newNode("n1", corev1.Taint{
			Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute}), want: runs},
		{name: "SET-146 SET-147 also for new Pods", node: newNode("n1", corev1.Taint{
			Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}), want: runs},
		{name: "SET-147 and one that cannot be reached", node: newNode("n1", corev1.Taint{
			Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoSchedule}), want: runs},
		{name: "SET-138 one that cannot be reached", node: newNode("n1", corev1.Taint{
			Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}), want: runs},
		{name: "SET-142 a cordoned one", node: newNode("n1", corev1.Taint{Key: "node.kubernetes.io/unschedulable",
			Effect: corev1.TaintEffectNoSchedule}), want: runs},
		{name: "SET-143 not one without network", node: newNode("n1", corev1.Taint{
			Key: "node.kubernetes.io/network-unavailable", Effect: corev1.TaintEffectNoSchedule}), want: keeps},
		{name: "SET-143 SET-146 one without network for Pods of the host's", node: newNode("n1", corev1.Taint{
			Key: "node.kubernetes.io/network-unavailable", Effect: corev1.TaintEffectNoSchedule}), want: runs,
			change: spec(func(spec *corev1.PodSpec) { spec.HostNetwork = true })},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := newSet()
			if c.change != nil {
				c.change(set)
			}
			if got := eligibilityOf(set).of(c.node); got != c.want {
				t.Errorf("verdict %d, want %d", got, c.want)
			}
		})
	}
}
