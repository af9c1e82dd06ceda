package localvolume

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	names "keelson.dev/kit/localvolume"
)

// protection is the API's finalizer: while a PersistentVolume has it, a claim may still be bound to it.
const protection = "kubernetes.io/pv-protection"

// handles matches the names of the folders of volumes.
var handles = regexp.MustCompile(`^pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Check returns an error if a Pod of the node cannot use a PersistentVolume of the driver. Its folder must have its
// own name, so that none can name the folder of another.
func Check(pv *corev1.PersistentVolume, node string) error {
	handle := pv.Spec.CSI.VolumeHandle
	switch {
	case !handles.MatchString(handle):
		return fmt.Errorf("spec.csi.volumeHandle %q of PersistentVolume %s must be pvc- and a UUID", handle, pv.Name)
	case handle != pv.Name:
		return fmt.Errorf("spec.csi.volumeHandle %q of PersistentVolume %s must be its own name", handle, pv.Name)
	case pv.Labels[names.NodeLabel] != node:
		return fmt.Errorf("label %s of PersistentVolume %s says that its folder is on node %q: it cannot be used on "+
			"node %s", names.NodeLabel, pv.Name, pv.Labels[names.NodeLabel], node)
	case pv.DeletionTimestamp != nil && !slices.Contains(pv.Finalizers, names.FolderFinalizer):
		return fmt.Errorf("persistentvolume %q is being deleted and its folder has been removed", pv.Name)
	}
	return nil
}

// Reclaiming is what is to be done about a PersistentVolume.
type Reclaiming struct {
	// Remove means that its folder is to be removed, and Release that its finalizer is to be removed after that.
	Remove, Release bool
}

// Decide returns what a node does about a PersistentVolume whose label names the node. The folder is removed when
// the object is being deleted, no claim is bound to it any more, and its policy is Delete; with any other policy
// the data stays when the object goes. An object that names no folder of its own has none.
func Decide(pv *corev1.PersistentVolume, node string) Reclaiming {
	if pv.DeletionTimestamp == nil || pv.Labels[names.NodeLabel] != node || !slices.Contains(pv.Finalizers,
		names.FolderFinalizer) ||
		slices.Contains(pv.Finalizers, protection) || pv.Status.Phase == corev1.VolumeBound {
		return Reclaiming{}
	}
	own := pv.Spec.CSI != nil && pv.Spec.CSI.Driver == names.Driver && Check(pv, node) == nil
	return Reclaiming{
		Remove:  own && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete,
		Release: true,
	}
}
