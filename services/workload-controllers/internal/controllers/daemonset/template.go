package daemonset

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/workload-controllers/internal/claim"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
)

// automatic are the taints that every daemon Pod tolerates, for ever: a node needs its daemons to become healthy, and
// most of all when it is not. The last two are not in the documentation's table, but what it
// promises needs them: a node that is not ready has its taint with both effects.
var automatic = []corev1.Taint{
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
}

// withoutNetwork is tolerated by Pods in the network of the host: the node's network may wait for one of them.
var withoutNetwork = corev1.Taint{Key: corev1.TaintNodeNetworkUnavailable, Effect: corev1.TaintEffectNoSchedule}

// tolerations returns those of the template and the automatic ones. An automatic one takes the place of the
// template's for the same taint, which may have been limited in time.
func tolerations(spec *corev1.PodSpec) []corev1.Toleration {
	all := slices.Clone(spec.Tolerations)
	taints := automatic
	if spec.HostNetwork {
		taints = append(slices.Clone(automatic), withoutNetwork)
	}
	for _, taint := range taints {
		toleration := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect}
		same := func(t corev1.Toleration) bool { return t.MatchToleration(&toleration) }
		if at := slices.IndexFunc(all, same); at >= 0 {
			all[at] = toleration
		} else {
			all = append(all, toleration)
		}
	}
	return all
}

// Prototype returns what the Pods of a revision are created from. It shares the template's maps and slices.
func Prototype(set *appsv1.DaemonSet, hash string) *corev1.Pod {
	template := &set.Spec.Template
	labels := maps.Clone(template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[controllerrevision.HashLabel] = hash
	if generation, ok := set.Annotations[appsv1.DeprecatedTemplateGeneration]; ok {
		labels[generationLabel] = generation
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: set.Name + "-", Namespace: set.Namespace,
			Labels: labels, Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{claim.Reference(owner(set))},
		},
		Spec: template.Spec,
	}
	pod.Spec.Tolerations = tolerations(&template.Spec)
	return pod
}

// generationLabel tells which template, by their number, a Pod was made from.
const generationLabel = "pod-template-generation"

// ForNode returns a Pod for one node: like the prototype, but that the scheduler can bind it only to this node. The
// terms of the template have been heard by then; preferences and what it says about other Pods stay.
func ForNode(prototype *corev1.Pod, node string) *corev1.Pod {
	pod := *prototype
	var affinity corev1.Affinity
	if of := prototype.Spec.Affinity; of != nil {
		affinity = *of
	}
	var ofNode corev1.NodeAffinity
	if affinity.NodeAffinity != nil {
		ofNode = *affinity.NodeAffinity
	}
	ofNode.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}
	affinity.NodeAffinity = &ofNode
	pod.Spec.Affinity = &affinity
	return &pod
}

// nodeOf returns the node that a daemon Pod is on or, before the scheduler has bound it, meant for; empty for a Pod
// that names none.
func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return ""
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn &&
				len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
