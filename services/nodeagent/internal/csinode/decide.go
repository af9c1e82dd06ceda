package csinode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/csiplugin"
)

// nodeIDs is the annotation of a Node with the drivers' names for it: a JSON object of IDs by driver, the same as
// the kubelet's.
const nodeIDs = "csi.volume.kubernetes.io/nodeid"

// next returns the desired CSINode, given the one in the API (nil for none): with the registered drivers, and
// earlier ones that may still come back. A change of a driver's immutable fields takes two steps: the driver is
// removed, then added again.
func next(old *storagev1.CSINode, node *corev1.Node, drivers []csiplugin.Identity,
	toCome func(driver string) bool) *storagev1.CSINode {
	out := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	if old != nil {
		out = old.DeepCopy()
	}
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	before := out.Spec.Drivers
	out.Spec.Drivers = nil
	for _, known := range before {
		at := slices.IndexFunc(drivers, func(d csiplugin.Identity) bool { return d.Name == known.Name })
		switch {
		case at < 0 && toCome(known.Name):
			out.Spec.Drivers = append(out.Spec.Drivers, known)
		case at >= 0 && sameForGood(known, entry(drivers[at])):
			out.Spec.Drivers = append(out.Spec.Drivers, entry(drivers[at]))
		}
	}
	for _, d := range drivers {
		if !slices.ContainsFunc(before, func(known storagev1.CSINodeDriver) bool { return known.Name == d.Name }) {
			out.Spec.Drivers = append(out.Spec.Drivers, entry(d))
		}
	}
	return out
}

// lists reports whether the CSINode has all of the drivers.
func lists(n *storagev1.CSINode, drivers []csiplugin.Identity) bool {
	return !slices.ContainsFunc(drivers, func(d csiplugin.Identity) bool {
		return !slices.ContainsFunc(n.Spec.Drivers,
			func(listed storagev1.CSINodeDriver) bool { return listed.Name == d.Name })
	})
}

// entry returns a driver's entry in a CSINode.
func entry(d csiplugin.Identity) storagev1.CSINodeDriver {
	out := storagev1.CSINodeDriver{Name: d.Name, NodeID: d.NodeID, TopologyKeys: d.TopologyKeys()}
	if d.MaxVolumes > 0 {
		out.Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To(d.MaxVolumes)}
	}
	return out
}

// sameForGood reports whether the fields that the API treats as immutable are equal.
func sameForGood(a, b storagev1.CSINodeDriver) bool {
	a.Allocatable = b.Allocatable
	return equality.Semantic.DeepEqual(a, b)
}

// describe returns the labels and annotations to be set on the Node; nil for none. Labels contain the drivers'
// topology. A label with another value is an error, and stays; labels of removed drivers also stay.
func describe(node *corev1.Node, listed []storagev1.CSINodeDriver,
	drivers []csiplugin.Identity) (change *metav1.ObjectMeta, err error) {
	labels, ids := map[string]string{}, map[string]string{}
	for _, d := range listed {
		ids[d.Name] = d.NodeID
	}
	for _, d := range drivers {
		for _, key := range d.TopologyKeys() {
			value, had := node.Labels[key]
			if !had {
				value, had = labels[key]
			}
			switch {
			case !had:
				labels[key] = d.Topology[key]
			case value != d.Topology[key]:
				err = fmt.Errorf("label %s of the node is %q: CSI driver %s says that it must be %q", key, value,
					d.Name, d.Topology[key])
			}
		}
	}
	change = &metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{}}
	text := ""
	if len(ids) > 0 {
		data, encodeErr := json.Marshal(ids)
		if encodeErr != nil {
			return nil, fmt.Errorf("encoding the IDs of the node: %w", encodeErr)
		}
		text = string(data)
	}
	if known, had := node.Annotations[nodeIDs]; known != text || had && text == "" {
		change.Annotations[nodeIDs] = text
	}
	if len(change.Labels) == 0 && len(change.Annotations) == 0 {
		return nil, err
	}
	return change, err
}

// merge returns the patch of a Node's metadata. An annotation with an empty text is removed.
func merge(change *metav1.ObjectMeta) map[string]any {
	annotations := map[string]any{}
	for key, value := range change.Annotations {
		annotations[key] = value
		if value == "" {
			annotations[key] = nil
		}
	}
	return map[string]any{"metadata": map[string]any{"labels": maps.Clone(change.Labels), "annotations": annotations}}
}
