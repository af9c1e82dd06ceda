package cycle_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/scheduler/internal/cycle"
)

// source is where a volume's data is: with a driver that has limits, with another or with none, mostly in a place of
// its own.
func (g *generator) source(name string) (s corev1.PersistentVolumeSource) {
	if g.chance(10) {
		name = "same"
	}
	switch g.IntN(4) {
	case 0:
		s.HostPath = &corev1.HostPathVolumeSource{Path: "/" + name}
	case 1:
		s.CSI = &corev1.CSIPersistentVolumeSource{Driver: "example.com/other", VolumeHandle: name}
	default:
		s.CSI = &corev1.CSIPersistentVolumeSource{Driver: "example.com/disk", VolumeHandle: name}
	}
	return s
}

// zones are the labels of a volume, mostly none.
func (g *generator) zones() map[string]string {
	switch g.IntN(10) {
	case 0:
		return map[string]string{corev1.LabelTopologyZone: pick(g, "a", "b", "a__b", "b__c", "ab")}
	case 1:
		return map[string]string{corev1.LabelFailureDomainBetaZone: pick(g, "a", "c")}
	case 2:
		return map[string]string{corev1.LabelTopologyRegion: "r"}
	}
	return nil
}

func (g *generator) csiNode(node string) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	for _, driver := range []string{"example.com/disk", "example.com/other"} {
		if g.chance(70) {
			d := storagev1.CSINodeDriver{Name: driver}
			if g.chance(80) {
				d.Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To(g.Int32N(4))}
			}
			n.Spec.Drivers = append(n.Spec.Drivers, d)
		}
	}
	return n
}

func (g *generator) attachment(name, node string, v *corev1.PersistentVolume) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: pick(g, "example.com/disk", "example.com/other"), NodeName: node,
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &v.Name}}}
	if v.Spec.CSI != nil && g.chance(90) {
		a.Spec.Attacher = v.Spec.CSI.Driver
	}
	return a
}

// setLimits changes how many volumes a node takes, or which are there.
func setLimits(g *generator, fast *cycle.Cycle, slow *storage, node string) {
	name := fmt.Sprintf("a%d", g.IntN(8))
	switch old := slow.Attachments[name]; {
	case g.chance(10):
		setDriver(g, fast, slow)
	case g.chance(10):
		delete(slow.Limits, node)
		delete(slow.Installed, node)
		fast.RemoveVolumeLimits(node)
	case g.chance(40):
		n := g.csiNode(node)
		slow.Limits[node], slow.Installed[node] = map[string]int32{}, nil
		for _, d := range n.Spec.Drivers {
			slow.Installed[node] = append(slow.Installed[node], d.Name)
			if d.Allocatable != nil {
				slow.Limits[node][d.Name] = *d.Allocatable.Count
			}
		}
		fast.SetVolumeLimits(n)
	case old != nil && g.chance(50):
		delete(slow.Attachments, name)
		fast.RemoveAttachment(name)
	default:
		volume, ok := anyKey(g, slow.Volumes)
		if !ok || g.chance(10) {
			slow.Attachments[name] = g.attachment(name, node, &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: "none"}})
		} else {
			slow.Attachments[name] = g.attachment(name, node, slow.Volumes[volume])
		}
		fast.SetAttachment(slow.Attachments[name])
	}
}

// setDriver changes what a driver wants of the scheduler.
func setDriver(g *generator, fast *cycle.Cycle, slow *storage) {
	d := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: pick(g, "example.com/disk", "example.com/other")},
		Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(g.chance(60)),
			PreventPodSchedulingIfMissing: ptr.To(g.chance(30))}}
	if g.chance(20) {
		d.Spec.StorageCapacity, d.Spec.PreventPodSchedulingIfMissing = nil, nil
		fast.RemoveDriver(d.Name)
	} else {
		fast.SetDriver(d)
	}
	slow.Tracked[d.Name] = ptr.Deref(d.Spec.StorageCapacity, false)
	slow.Required[d.Name] = ptr.Deref(d.Spec.PreventPodSchedulingIfMissing, false)
}
