package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// joinMatchLabelKeys writes the Pod's own values of matchLabelKeys and mismatchLabelKeys into the selectors that they
// refine, so that whoever places the Pod needs to look at the selectors alone.
func joinMatchLabelKeys(p *corev1.Pod) {
	if affinity := p.Spec.Affinity; affinity != nil {
		if pod := affinity.PodAffinity; pod != nil {
			joinTerms(p.Labels, pod.RequiredDuringSchedulingIgnoredDuringExecution,
				pod.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if anti := affinity.PodAntiAffinity; anti != nil {
			joinTerms(p.Labels, anti.RequiredDuringSchedulingIgnoredDuringExecution,
				anti.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for i := range p.Spec.TopologySpreadConstraints {
		constraint := &p.Spec.TopologySpreadConstraints[i]
		joinKeys(constraint.LabelSelector, constraint.MatchLabelKeys, p.Labels, metav1.LabelSelectorOpIn)
	}
}

func joinTerms(labels map[string]string, hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm) {
	for i := range hard {
		joinTerm(labels, &hard[i])
	}
	for i := range soft {
		joinTerm(labels, &soft[i].PodAffinityTerm)
	}
}

func joinTerm(labels map[string]string, term *corev1.PodAffinityTerm) {
	joinKeys(term.LabelSelector, term.MatchLabelKeys, labels, metav1.LabelSelectorOpIn)
	joinKeys(term.LabelSelector, term.MismatchLabelKeys, labels, metav1.LabelSelectorOpNotIn)
}

// joinKeys adds one requirement for each key that the Pod has a label of. A null selector matches nothing and stays so;
// one that names the key already, as on a Pod that was exported and created again, is left alone.
func joinKeys(selector *metav1.LabelSelector, keys []string, labels map[string]string,
	operator metav1.LabelSelectorOperator) {
	if selector == nil {
		return
	}
	for _, key := range keys {
		value, labelled := labels[key]
		requirement := metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}}
		same := func(r metav1.LabelSelectorRequirement) bool {
			return r.Key == key && r.Operator == operator && slices.Equal(r.Values, requirement.Values)
		}
		if labelled && !slices.ContainsFunc(selector.MatchExpressions, same) {
			selector.MatchExpressions = append(selector.MatchExpressions, requirement)
		}
	}
}
