package nodeaffinity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/rules"
)

// maxPins bounds the nodes that are looked at one by one.
const maxPins = 16

// pins returns nodes outside of which the Pod certainly matches none, as the Pods of a DaemonSet and those with local
// volumes have; nil for a Pod that does not confine itself by name.
func pins(spec *corev1.PodSpec) *rules.Pins {
	if host, ok := spec.NodeSelector[corev1.LabelHostname]; ok {
		return &rules.Pins{Hostnames: []string{host}}
	}
	terms := required(spec)
	if terms == nil {
		return nil
	}
	var pins rules.Pins
	for i := range terms.NodeSelectorTerms {
		term := &terms.NodeSelectorTerms[i]
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
			continue // matches nothing
		}
		if names, ok := values(term.MatchFields, "metadata.name"); ok {
			pins.Names = append(pins.Names, names...)
		} else if names, ok := values(term.MatchExpressions, corev1.LabelHostname); ok {
			pins.Hostnames = append(pins.Hostnames, names...)
		} else {
			return nil
		}
	}
	if len(pins.Names)+len(pins.Hostnames) > maxPins {
		return nil
	}
	return &pins
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
