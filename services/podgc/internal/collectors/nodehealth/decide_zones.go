package nodehealth

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// noDisruptionCheck is the label of Nodes that say nothing about the health of their zone.
const noDisruptionCheck = "node.kubernetes.io/exclude-disruption"

// zoneState is how much of a zone is in trouble at once: the more, the less it is the nodes' own.
type zoneState string

const (
	normal            zoneState = "Normal"
	partialDisruption zoneState = "PartialDisruption"
	fullDisruption    zoneState = "FullDisruption"
)

// census counts the nodes of a zone.
type census struct{ ready, notReady int }

// state says in which state a zone is of which the share threshold makes much.
func (c census) state(threshold float64) zoneState {
	switch {
	case c.ready == 0 && c.notReady > 0:
		return fullDisruption
	case c.notReady > 2 && float64(c.notReady)/float64(c.ready+c.notReady) >= threshold:
		return partialDisruption
	}
	return normal
}

// pause is the time between two nodes of a zone that are given up; false means that none is.
func (s *Settings) pause(c census) (time.Duration, bool) {
	rate := s.EvictionRate
	if c.state(s.UnhealthyZone) == partialDisruption {
		if rate = s.SecondaryEvictionRate; c.ready+c.notReady <= s.LargeZone {
			rate = 0
		}
	}
	if rate <= 0 {
		return 0, false
	}
	return time.Duration(float64(time.Second) / rate), true
}

// zoneOf names the failure domain of a Node.
func zoneOf(node *corev1.Node) string {
	return node.Labels[corev1.LabelTopologyRegion] + "/" + node.Labels[corev1.LabelTopologyZone]
}

// ReadLabels returns those of a Node's labels that the collector reads.
func ReadLabels(labels map[string]string) map[string]string {
	var read map[string]string
	for _, key := range []string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone, noDisruptionCheck} {
		if value, ok := labels[key]; ok {
			if read == nil {
				read = map[string]string{}
			}
			read[key] = value
		}
	}
	return read
}
