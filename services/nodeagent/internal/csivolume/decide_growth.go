package csivolume

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/claimgrowth"
	"keelson.dev/kit/conditions"
)

// growth is how a volume is to grow on the node.
type growth struct {
	to resource.Quantity
	// noted means that the claim's status has the size already: another node wrote it.
	noted bool
}

// growing returns how the volume of a claim is to grow on the node; nil for not at all. held is the size that it is
// known to have on the node, in bytes; 0 if that is unknown.
//
// A driver's controller that leaves the rest to nodes first raises the capacity of the PersistentVolume and then sets
// the claim's status to NodeResizePending; an older one sets only a condition.
func growing(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, held int64) *growth {
	ref := pv.Spec.ClaimRef
	size, sized := pv.Spec.Capacity[corev1.ResourceStorage]
	has, known := claim.Status.Capacity[corev1.ResourceStorage]
	if ref == nil || ref.UID != claim.UID || claim.Spec.VolumeName != pv.Name || !sized || !known || size.Cmp(has) < 0 {
		return nil
	}
	switch claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress:
		return &growth{to: size}
	case "":
	default: // the controller's turn
		return nil
	}
	switch {
	case size.Cmp(has) > 0:
		return &growth{to: size}
	case held > 0 && bytesOf(size) > held:
		return &growth{to: size, noted: true}
	}
	return nil
}

// bytesOf returns a size in bytes, at most the largest that a driver can be told.
func bytesOf(size resource.Quantity) int64 {
	if size.CmpInt64(math.MaxInt64) >= 0 {
		return math.MaxInt64
	}
	return size.Value()
}

// sizeOf returns the size that a claim says its volume has, in bytes; 0 if it does not say.
func sizeOf(claim *corev1.PersistentVolumeClaim) int64 {
	return bytesOf(claim.Status.Capacity[corev1.ResourceStorage])
}

// outcome is what a driver's answer means for the growth of a volume.
type outcome int

const (
	grown outcome = iota
	// inUse means that the driver can grow the volume only while no Pod has it.
	inUse
	// infeasible means that the volume will never have the size.
	infeasible
	// failed means that it did not grow, unclear that it may be growing still. Both are tried again.
	failed
	unclear
)

// claimConditions are the conditions of a claim.
var claimConditions conditions.Kind[corev1.PersistentVolumeClaimCondition,
	corev1.PersistentVolumeClaimConditionType] = func(
	c *corev1.PersistentVolumeClaimCondition,
) conditions.Fields[corev1.PersistentVolumeClaimConditionType] {
	return conditions.Fields[corev1.PersistentVolumeClaimConditionType]{Type: c.Type, Status: string(c.Status),
		Reason: c.Reason, Message: c.Message, LastTransitionTime: &c.LastTransitionTime}
}

// statusBefore returns the status of a claim before the driver is called.
func statusBefore(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimStatus {
	out := claim.Status.DeepCopy()
	setState(out, corev1.PersistentVolumeClaimNodeResizeInProgress)
	return out
}

// statusAfter returns the status of a claim after a call with the outcome; message is the driver's.
func statusAfter(claim *corev1.PersistentVolumeClaim, to resource.Quantity, of outcome, message string,
	now time.Time) *corev1.PersistentVolumeClaimStatus {
	out := claim.Status.DeepCopy()
	switch of {
	case grown:
		out.Capacity[corev1.ResourceStorage] = to
		setState(out, "")
		out.Conditions = slices.DeleteFunc(out.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return claimgrowth.IsCondition(c.Type)
		})
		return out
	case infeasible:
		setState(out, corev1.PersistentVolumeClaimNodeResizeInfeasible)
	case inUse:
		setState(out, corev1.PersistentVolumeClaimNodeResizePending)
	case unclear:
		return out
	}
	out.Conditions, _ = claimConditions.Set(out.Conditions, corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionTrue, Message: message,
		LastTransitionTime: metav1.NewTime(now)}, now)
	return out
}

// setState sets how far the growth is; empty for its end.
func setState(status *corev1.PersistentVolumeClaimStatus, state corev1.ClaimResourceStatus) {
	if state == "" {
		delete(status.AllocatedResourceStatuses, corev1.ResourceStorage)
		return
	}
	if status.AllocatedResourceStatuses == nil {
		status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{}
	}
	status.AllocatedResourceStatuses[corev1.ResourceStorage] = state
}

// patchOf returns the merge patch that gives a claim, in exactly this version, the status; nil if it has that already.
func patchOf(claim *corev1.PersistentVolumeClaim, next *corev1.PersistentVolumeClaimStatus) ([]byte, error) {
	before, changed := &claim.Status, map[string]any{}
	const storage = corev1.ResourceStorage
	if !equality.Semantic.DeepEqual(before.Capacity[storage], next.Capacity[storage]) {
		changed["capacity"] = map[corev1.ResourceName]any{storage: next.Capacity[storage]}
	}
	if state := next.AllocatedResourceStatuses[storage]; before.AllocatedResourceStatuses[storage] != state {
		var value any // null removes it
		if state != "" {
			value = state
		}
		changed["allocatedResourceStatuses"] = map[corev1.ResourceName]any{storage: value}
	}
	if !equality.Semantic.DeepEqual(before.Conditions, next.Conditions) {
		changed["conditions"] = next.Conditions
	}
	if len(changed) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(map[string]any{"status": changed,
		"metadata": map[string]any{"uid": claim.UID, "resourceVersion": claim.ResourceVersion}})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of the claim: %w", err)
	}
	return patch, nil
}
