package noderestriction

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/kit/localvolume"
)

// checkVolume lets a Node say that the folder of a volume of its own is gone: it takes its finalizer off one that is
// being deleted, and changes nothing else.
func checkVolume(node string, updated, old *corev1.PersistentVolume) error {
	switch {
	case old.Labels[localvolume.NodeLabel] != node:
		return fmt.Errorf("node %q can only update persistentvolumes with the label %s set to itself", node,
			localvolume.NodeLabel)
	case old.DeletionTimestamp == nil:
		return fmt.Errorf("node %q can only update persistentvolumes that are being deleted", node)
	}
	allowed := old.DeepCopy()
	allowed.Finalizers = slices.DeleteFunc(allowed.Finalizers,
		func(finalizer string) bool { return finalizer == localvolume.FolderFinalizer })
	// Who wrote what, and when, is the apiserver's own record.
	allowed.ManagedFields, allowed.ResourceVersion = updated.ManagedFields, updated.ResourceVersion
	if !equality.Semantic.DeepEqual(updated, allowed) {
		return fmt.Errorf("node %q can only take the finalizer %s off a persistentvolume", node,
			localvolume.FolderFinalizer)
	}
	return nil
}

// checkDrivers lets a Node say which drivers it has itself.
func checkDrivers(node, name string) error {
	if name != node {
		return fmt.Errorf("can only access CSINode with the same name as the requesting node")
	}
	return nil
}
