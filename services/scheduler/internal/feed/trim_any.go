package feed

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Trim reduces an object, in place, to what the scheduler reads of it, as the Feed does. An object of a kind that the
// Feed does not watch stays as it is.
func Trim(object runtime.Object) error {
	trim := trimOf(object)
	if trim == nil {
		return nil
	}
	_, err := trim(object)
	return err
}

// trimOf returns what reduces objects of the same kind, nil for a kind that is not watched.
func trimOf(object runtime.Object) cache.TransformFunc {
	switch object.(type) {
	case *corev1.Node:
		return trimNode
	case *corev1.Pod:
		return trimPod
	case *corev1.PersistentVolumeClaim:
		return trimClaim
	case *corev1.PersistentVolume:
		return trimVolume
	case *storagev1.StorageClass:
		return trimClass
	case *storagev1.CSINode:
		return trimCSINode
	case *storagev1.VolumeAttachment:
		return trimAttachment
	case *storagev1.CSIDriver:
		return trimDriver
	case *storagev1.CSIStorageCapacity:
		return trimStorage
	case *corev1.Service, *corev1.ReplicationController, *appsv1.ReplicaSet, *appsv1.StatefulSet:
		return trimGroup
	case *corev1.Namespace:
		return trimNamespace
	case *policyv1.PodDisruptionBudget:
		return trimBudget
	case *resourcev1.ResourceClaim:
		return trimDeviceClaim
	case *schedulingv1beta1.PodGroup:
		return trimPodGroup
	}
	return nil
}
