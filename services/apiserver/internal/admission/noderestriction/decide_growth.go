package noderestriction

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"keelson.dev/kit/claimgrowth"
)

// byNode are the states of growth that are a Node's to leave and to set; it leaves the empty one when it finds a volume
// that has grown, and sets it when it is done.
var byNode = []corev1.ClaimResourceStatus{"", corev1.PersistentVolumeClaimNodeResizePending,
	corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible}

// checkGrowth lets a Node say how far the volume of a claim has grown, and change nothing else. The growth that was
// found to be infeasible is the controller's to begin again. Whether the volume has the size is checkSize's to say.
func checkGrowth(node string, updated, old *corev1.PersistentVolumeClaim) error {
	const storage = corev1.ResourceStorage
	from, to := old.Status.AllocatedResourceStatuses[storage], updated.Status.AllocatedResourceStatuses[storage]
	switch {
	case old.Status.Phase != corev1.ClaimBound || old.Spec.VolumeName == "":
		return fmt.Errorf("node %q can only update the status of persistentvolumeclaims that are bound", node)
	case from != to && (!slices.Contains(byNode, from) || from == corev1.PersistentVolumeClaimNodeResizeInfeasible ||
		!slices.Contains(byNode, to)):
		return fmt.Errorf("node %q is not allowed to change allocatedResourceStatuses[storage] from %q to %q", node,
			from, to)
	}
	size, before := updated.Status.Capacity[storage], old.Status.Capacity[storage]
	if size.Cmp(before) < 0 {
		return fmt.Errorf("node %q is not allowed to lower status.capacity of a persistentvolumeclaim", node)
	}
	allowed := old.DeepCopy()
	allowed.Status.AllocatedResourceStatuses = with(allowed.Status.AllocatedResourceStatuses, storage, to, to != "")
	_, sized := updated.Status.Capacity[storage]
	allowed.Status.Capacity = with(allowed.Status.Capacity, storage, size, sized)
	if equality.Semantic.DeepEqual(others(updated.Status.Conditions), others(old.Status.Conditions)) {
		allowed.Status.Conditions = updated.Status.Conditions
	}
	// Who wrote what, and when, is the apiserver's own record.
	allowed.ManagedFields, allowed.ResourceVersion = updated.ManagedFields, updated.ResourceVersion
	if !equality.Semantic.DeepEqual(updated, allowed) {
		return fmt.Errorf("node %q can only update how far a persistentvolumeclaim has grown: status.capacity, "+
			"status.allocatedResourceStatuses and their conditions", node)
	}
	return nil
}

// with returns the map with the value of the key, or without the key.
func with[K comparable, V any](m map[K]V, key K, value V, has bool) map[K]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[K]V{}
	}
	if delete(out, key); has {
		out[key] = value
	}
	return out
}

// others are the conditions that do not say how a claim grows.
func others(all []corev1.PersistentVolumeClaimCondition) []corev1.PersistentVolumeClaimCondition {
	return slices.DeleteFunc(slices.Clone(all), func(c corev1.PersistentVolumeClaimCondition) bool {
		return claimgrowth.IsCondition(c.Type)
	})
}

// hasGrown reports whether an update gives a claim another size.
func hasGrown(updated, old *corev1.PersistentVolumeClaim) bool {
	size, before := updated.Status.Capacity[corev1.ResourceStorage], old.Status.Capacity[corev1.ResourceStorage]
	return size.Cmp(before) != 0
}

// checkSize lets a Node give a claim the size of its volume, which must be one of a CSI driver, and no other.
func checkSize(node string, updated *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	size, has := updated.Status.Capacity[corev1.ResourceStorage], volume.Spec.Capacity[corev1.ResourceStorage]
	ref := volume.Spec.ClaimRef
	if volume.Spec.CSI == nil || ref == nil || ref.UID != updated.UID || size.Cmp(has) != 0 {
		return fmt.Errorf("node %q is not allowed to say that a persistentvolumeclaim has %s: it can only have what "+
			"its persistentvolume of a CSI driver has", node, size.String())
	}
	return nil
}
