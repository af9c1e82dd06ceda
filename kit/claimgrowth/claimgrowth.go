// Package claimgrowth says which part of a PersistentVolumeClaim's status tells how the claim grows: a nodeagent writes
// it, and the apiserver lets a node write nothing else.
package claimgrowth

import corev1 "k8s.io/api/core/v1"

// IsCondition reports whether conditions of the type say how a claim grows.
func IsCondition(condition corev1.PersistentVolumeClaimConditionType) bool {
	switch condition {
	case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
		return true
	}
	return false
}
