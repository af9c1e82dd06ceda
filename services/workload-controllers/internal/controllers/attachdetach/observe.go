package attachdetach

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/kit/volumename"
	"keelson.dev/services/workload-controllers/internal/storeindex"
)

// lookAtVolume gathers what a decision about a volume depends on. All of it is shared with the cache.
func (s *stores) lookAtVolume(volume Volume) VolumeInput {
	pvs := s.pvsOf(volume)
	in := VolumeInput{Volume: volume, Attachments: s.attachmentsOf(volume, pvs), Nodes: map[string]*corev1.Node{},
		Required: needsAttaching(volume.Driver, storeindex.Get[storagev1.CSIDriver](s.drivers, volume.Driver))}
	var names []string
	for _, pv := range pvs {
		names = append(names, pv.Name)
	}
	if len(pvs) > 0 {
		in.PV = pvs[0]
	}
	in.Users = s.usersOf(names...)
	for _, user := range in.Users {
		name := user.Pod.Spec.NodeName
		in.Nodes[name] = storeindex.Get[corev1.Node](s.nodes, name)
	}
	return in
}

// lookAtNode gathers what a decision about a node's attachments depends on, except the time.
func (s *stores) lookAtNode(name string) NodeInput {
	in := NodeInput{Name: name, Node: storeindex.Get[corev1.Node](s.nodes, name)}
	for _, object := range storeindex.Find[storagev1.VolumeAttachment](s.attachments, attachmentsByNode, name) {
		in.Attachments = append(in.Attachments, s.lookAt(object, in.Node))
	}
	slices.SortFunc(in.Attachments, func(a, b Attachment) int { return strings.Compare(a.Object.Name, b.Object.Name) })
	return in
}

// lookAt finds the volume of an attachment, and the Pods on its node that use it.
func (s *stores) lookAt(object *storagev1.VolumeAttachment, node *corev1.Node) Attachment {
	a := Attachment{Object: object}
	pvs := []string{pvName(object)}
	volume, known := s.volumeOfPV(pvName(object))
	if !known && node != nil {
		volume, known = nameInStatus(object, node)
	}
	if known {
		a.Volume = volume
		for i, pv := range s.pvsOf(volume) {
			pvs = append(pvs, pv.Name)
			reserved := pv.Annotations[reservedFor]
			a.Misplaced = a.Misplaced || i == 0 && isExclusive(pv) && reserved != "" && reserved != object.Spec.NodeName
		}
		a.Ours = object.Name == volume.attachment(object.Spec.NodeName)
	} else {
		// Without the PersistentVolume only the form of the name is left to judge by.
		a.Ours = hasOurForm(object.Name)
	}
	slices.Sort(pvs)
	a.Users = onNode(s.usersOf(slices.Compact(pvs)...), object.Spec.NodeName)
	return a
}

// nameInStatus finds the volume of an attachment whose PersistentVolume is gone among the volumes in the status of
// its node.
func nameInStatus(a *storagev1.VolumeAttachment, node *corev1.Node) (Volume, bool) {
	names := slices.Clone(node.Status.VolumesInUse)
	for _, listed := range node.Status.VolumesAttached {
		names = append(names, listed.Name)
	}
	for _, name := range names {
		driver, handle, ok := volumename.Parse(name)
		if volume := (Volume{Driver: driver, Handle: handle}); ok && volume.attachment(node.Name) == a.Name {
			return volume, true
		}
	}
	return Volume{}, false
}

// hasOurForm reports whether a name has the form of those that this controller gives.
func hasOurForm(name string) bool {
	return len(name) == len(volumename.Attachment("", "", "")) && strings.HasPrefix(name, "csi-")
}
