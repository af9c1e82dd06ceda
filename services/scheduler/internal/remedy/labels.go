package remedy

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"keelson.dev/services/scheduler/internal/columns"
)

// relabel returns the labels that a node would need so that the Pod asks for it, as few as can be. There are none where
// the Pod asks for a node by name or hostname, which are the node's own.
func relabel(spec *corev1.PodSpec, v columns.View) ([]Label, bool) {
	node := v.Node()
	have := maps.Clone(node.Labels)
	var base []Label
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		value, ok := have[key]
		if want := spec.NodeSelector[key]; !ok || value != want {
			base, have[key] = append(base, Label{Key: key, Value: want}), want
		}
	}
	if slices.ContainsFunc(base, ofHostname) {
		return nil, false
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil ||
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return base, len(base) > 0
	}
	var best []Label
	found := false
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if more, ok := satisfy(term, node.Name, have, spec.NodeSelector); ok && (!found || len(more) < len(best)) {
			best, found = more, true
		}
	}
	labels := slices.Concat(base, best)
	return labels, found && len(labels) > 0
}

func ofHostname(l Label) bool { return l.Key == corev1.LabelHostname }

// satisfy returns the labels that a term asks for beyond those that there are; those of fixed keys stay.
func satisfy(term corev1.NodeSelectorTerm, name string, have, fixed map[string]string) ([]Label, bool) {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 ||
		len(term.MatchFields) > 0 && !matches(corev1.NodeSelectorTerm{MatchFields: term.MatchFields}, name, nil) {
		return nil, false
	}
	byKey := map[string][]corev1.NodeSelectorRequirement{}
	for _, r := range term.MatchExpressions {
		byKey[r.Key] = append(byKey[r.Key], r)
	}
	var out []Label
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		of := corev1.NodeSelectorTerm{MatchExpressions: byKey[key]}
		if matches(of, name, have) {
			continue
		}
		label, ok := choose(key, of)
		if _, is := fixed[key]; is || !ok || ofHostname(label) {
			return nil, false
		}
		out = append(out, label)
	}
	return out, true
}

// choose returns a value of the key, or that there is none, that all expressions of the term match.
func choose(key string, of corev1.NodeSelectorTerm) (Label, bool) {
	var values []string
	for _, r := range of.MatchExpressions {
		switch r.Operator {
		case corev1.NodeSelectorOpIn:
			values = append(values, r.Values...)
		case corev1.NodeSelectorOpExists:
			values = append(values, "true")
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			values = append(values, beyond(r)...)
		case corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpDoesNotExist:
		}
	}
	for _, value := range values {
		if matches(of, "", map[string]string{key: value}) {
			return Label{Key: key, Value: value}, true
		}
	}
	return Label{Key: key, Gone: true}, matches(of, "", nil)
}

// beyond returns the number next to the bound.
func beyond(r corev1.NodeSelectorRequirement) []string {
	if len(r.Values) != 1 {
		return nil
	}
	bound, err := strconv.ParseInt(r.Values[0], 10, 64)
	if err != nil {
		return nil
	}
	if r.Operator == corev1.NodeSelectorOpGt {
		return []string{strconv.FormatInt(bound+1, 10)}
	}
	return []string{strconv.FormatInt(bound-1, 10)}
}

// matches reports whether a node of this name and these labels matches the term.
func matches(term corev1.NodeSelectorTerm, name string, have map[string]string) bool {
	n := &corev1.Node{}
	n.Name, n.Labels = name, have
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		term}})
	return err == nil && selector.Match(n)
}
