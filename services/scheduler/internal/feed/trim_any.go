package feed

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Trim reduces an object, in place, to what the scheduler reads of it, as the Feed does. It returns an object of a kind
// that the Feed does not watch as it is.
func Trim(object runtime.Object) error {
	var err error
	switch object.(type) {
	case *corev1.Node:
		_, err = trimNode(object)
	case *corev1.Pod:
		_, err = trimPod(object)
	case *corev1.PersistentVolumeClaim:
		_, err = trimClaim(object)
	case *corev1.PersistentVolume:
		_, err = trimVolume(object)
	case *storagev1.StorageClass:
		_, err = trimClass(object)
	case *storagev1.CSINode:
		_, err = trimCSINode(object)
	case *storagev1.VolumeAttachment:
		_, err = trimAttachment(object)
	case *corev1.Service, *corev1.ReplicationController, *appsv1.ReplicaSet, *appsv1.StatefulSet:
		_, err = trimGroup(object)
	case *corev1.Namespace:
		_, err = trimNamespace(object)
	case *policyv1.PodDisruptionBudget:
		_, err = trimBudget(object)
	case *schedulingv1beta1.PodGroup:
		_, err = trimPodGroup(object)
	}
	return err
}
