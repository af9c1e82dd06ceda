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

// nodeIDs is the annotation of a Node with what drivers call it: a JSON object of IDs by driver, as with a kubelet.
const nodeIDs = "csi.volume.kubernetes.io/nodeid"

// next returns the CSINode of the node as it shall be, given the one that the API has (nil for none): with the
// registered drivers, and those of before that are still to come. What of a driver cannot change in place takes
// two steps: it goes, and it comes anew.
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

// entry is what a CSINode says of a driver.
func entry(d csiplugin.Identity) storagev1.CSINodeDriver {
	out := storagev1.CSINodeDriver{Name: d.Name, NodeID: d.NodeID, TopologyKeys: d.TopologyKeys()}
	if d.MaxVolumes > 0 {
		out.Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To(d.MaxVolumes)}
	}
	return out
}

// sameForGood reports whether what the API lets nobody change is the same.
func sameForGood(a, b storagev1.CSINodeDriver) bool {
	a.Allocatable = b.Allocatable
	return equality.Semantic.DeepEqual(a, b)
}

// describe returns which labels and annotations the Node is to get; nil for none. Labels say where it is in the eyes
// of the drivers. One that says something else already is an error, and stays; so do those of drivers that have gone.
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

// merge is the patch of a Node's metadata. An annotation without a text is taken away.
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
