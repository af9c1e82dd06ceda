// Package nodenames finds the nodes to which a node selector confines itself by name.
//
//keelson:decision
package nodenames

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Of returns nodes outside of which the selector certainly matches none, as values of metadata.name and of the label
// kubernetes.io/hostname; false for a selector that does not confine itself by name.
func Of(selector *corev1.NodeSelector) (names, hostnames []string, ok bool) {
	for i := range selector.NodeSelectorTerms {
		term := &selector.NodeSelectorTerms[i]
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
			continue // matches nothing
		}
		if found, ok := values(term.MatchFields, "metadata.name"); ok {
			names = append(names, found...)
		} else if found, ok := values(term.MatchExpressions, corev1.LabelHostname); ok {
			hostnames = append(hostnames, found...)
		} else {
			return nil, nil, false
		}
	}
	return names, hostnames, true
}

// values returns the values of a requirement In of that key.
func values(requirements []corev1.NodeSelectorRequirement, key string) ([]string, bool) {
	i := slices.IndexFunc(requirements, func(r corev1.NodeSelectorRequirement) bool {
		return r.Key == key && r.Operator == corev1.NodeSelectorOpIn
	})
	if i < 0 {
		return nil, false
	}
	return requirements[i].Values, true
}

// Read reports whether the term asks for more than what nodes of one shape have in common.
func Read(t corev1.NodeSelectorTerm) bool {
	return len(t.MatchFields) > 0 || slices.ContainsFunc(t.MatchExpressions,
		func(r corev1.NodeSelectorRequirement) bool { return r.Key == corev1.LabelHostname })
}
