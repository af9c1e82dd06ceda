package podtopologylabels

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// keys are the labels of a Node that its Pods get.
var keys = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// decide adds to labels those of the Node where it has them. What the Node says wins.
func decide(have, node map[string]string) map[string]string {
	out := maps.Clone(have)
	for _, key := range keys {
		value, is := node[key]
		if !is {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out
}
