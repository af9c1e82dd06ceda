package attachdetach

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/kit/localvolume"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/volumename"
)

// reservedFor is the annotation of a PersistentVolume that only one node may have at a time: it names the Node
// that the volume may be attached to. It is written before each attachment, at the resource version that was
// decided on.
const reservedFor = "attachdetach.keelson.dev/reserved-for"

// Volume identifies what a driver attaches, whichever PersistentVolumes represent it.
type Volume struct{ Driver, Handle string }

// Name returns the name of the volume in the status of a Node.
func (v Volume) Name() corev1.UniqueVolumeName { return volumename.Unique(v.Driver, v.Handle) }

// attachment returns the name of the VolumeAttachment of the volume to a node.
func (v Volume) attachment(node string) string {
	return volumename.Attachment(v.Driver, v.Handle, node)
}

// volumeOf returns the volume of a PersistentVolume; false means that no driver serves it.
func volumeOf(pv *corev1.PersistentVolume) (Volume, bool) {
	driver, handle := volumename.CSI(pv)
	return Volume{Driver: driver, Handle: handle}, driver != "" && handle != ""
}

// isExclusive reports whether only one node may have the volume at a time.
func isExclusive(pv *corev1.PersistentVolume) bool {
	return !slices.ContainsFunc(pv.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany
	})
}

// needsAttaching reports whether volumes of a driver need attaching: they do unless its CSIDriver says otherwise.
func needsAttaching(name string, driver *storagev1.CSIDriver) bool {
	if name == localvolume.Driver {
		return false // local folders, which have no CSIDriver
	}
	return driver == nil || driver.Spec.AttachRequired == nil || *driver.Spec.AttachRequired
}

// User is a Pod on a node that names the volume and whose containers have not ended for good.
type User struct {
	Pod *corev1.Pod
	// HasClaim says that the Pod's claim and the volume are bound to each other.
	HasClaim bool
}

// waits reports whether the Pod needs the volume attached. A Pod that is being deleted starts no more containers,
// and its attachment may have been broken by hand.
func (u User) waits() bool { return u.HasClaim && podview.IsActive(u.Pod) }

// isOutOfService reports whether a user declared the node to be switched off.
func isOutOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeOutOfService
	})
}

// isReady reports whether the Node is marked ready, by the node and not overruled by podgc.
func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// lists reports whether the node's record lists the volume as attached.
func lists(node *corev1.Node, volume Volume) bool {
	return slices.ContainsFunc(node.Status.VolumesAttached, func(a corev1.AttachedVolume) bool {
		return a.Name == volume.Name()
	})
}

// onNode returns the users on a node.
func onNode(users []User, node string) []User {
	return slices.DeleteFunc(slices.Clone(users), func(u User) bool { return u.Pod.Spec.NodeName != node })
}
