package csidriver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Grow does what the resizer of a driver does about a claim that asks for more: the volume grows in the storage, and
// what is left is the node's to do.
func (s *Storage) Grow(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	claims, volumes := client.CoreV1().PersistentVolumeClaims(namespace), client.CoreV1().PersistentVolumes()
	claim, err := claims.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the claim: %w", err)
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	pv, err := volumes.Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the volume: %w", err)
	}
	if claim, err = s.say(ctx, client, claim, size, corev1.PersistentVolumeClaimControllerResizeInProgress,
		corev1.PersistentVolumeClaimResizing); err != nil {
		return err
	}
	if err := s.Create(pv.Spec.CSI.VolumeHandle, size.Value()); err != nil {
		return err
	}
	pv.Spec.Capacity[corev1.ResourceStorage] = size
	if _, err := volumes.Update(ctx, pv, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the size of the volume: %w", err)
	}
	_, err = s.say(ctx, client, claim, size, corev1.PersistentVolumeClaimNodeResizePending,
		corev1.PersistentVolumeClaimFileSystemResizePending)
	return err
}

// say writes how far a claim has grown.
func (s *Storage) say(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim,
	size resource.Quantity, state corev1.ClaimResourceStatus,
	condition corev1.PersistentVolumeClaimConditionType) (*corev1.PersistentVolumeClaim, error) {
	claim.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: size}
	claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
		corev1.ResourceStorage: state}
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: condition, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.Now()}}
	claim, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim,
		metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("writing how far the claim has grown: %w", err)
	}
	return claim, nil
}
