package volumes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// zoneLabels are the labels of volumes that say where they can be used, and the labels of nodes that say so newly.
var zoneLabels = []struct{ volume, node string }{
	{corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyZone},
	{corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyRegion},
	{corev1.LabelTopologyZone, corev1.LabelTopologyZone},
	{corev1.LabelTopologyRegion, corev1.LabelTopologyRegion},
}

// Zone is a label of nodes on which a volume can be used: under either key, with one of the values.
type Zone struct {
	Key, Or string
	Values  []string
}

// zonesOf returns what the labels of a volume ask of nodes; a label with an empty value asks nothing.
func zonesOf(pv *corev1.PersistentVolume) (zones []Zone) {
	for _, label := range zoneLabels {
		value, labelled := pv.Labels[label.volume]
		values := strings.Split(value, "__")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		if labelled && !slices.Contains(values, "") {
			zones = append(zones, Zone{Key: label.volume, Or: label.node, Values: values})
		}
	}
	return zones
}

// allows reports whether a node with these labels is in the zone.
func (z Zone) allows(labels map[string]string) bool {
	value, labelled := labels[z.Key]
	if !labelled {
		value, labelled = labels[z.Or]
	}
	return labelled && slices.Contains(z.Values, value)
}

// InZones reports whether the volumes of the Pod can be used on a node with these labels. A node that says nothing of
// zones is in all.
func (d *Demand) InZones(labels map[string]string) bool {
	if !slices.ContainsFunc(zoneLabels, func(l struct{ volume, node string }) bool {
		_, labelled := labels[l.volume]
		return labelled
	}) {
		return true
	}
	for i := range d.Needs {
		for _, zone := range d.Needs[i].Zones {
			if !zone.allows(labels) {
				return false
			}
		}
	}
	return true
}
