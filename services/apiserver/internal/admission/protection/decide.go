package protection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The finalizers that podgc takes away when nothing uses the object any more.
const (
	claimFinalizer           = "kubernetes.io/pvc-protection"
	volumeFinalizer          = "kubernetes.io/pv-protection"
	attributesClassFinalizer = "kubernetes.io/vac-protection"
	podGroupFinalizer        = "scheduling.k8s.io/podgroup-protection"
)

func ofStorage(object runtime.Object) string {
	switch object.(type) {
	case *corev1.PersistentVolumeClaim:
		return claimFinalizer
	case *corev1.PersistentVolume:
		return volumeFinalizer
	case *storagev1.VolumeAttributesClass:
		return attributesClassFinalizer
	}
	return ""
}

func ofPodGroup(object runtime.Object) string {
	if _, ok := object.(*schedulingv1beta1.PodGroup); ok {
		return podGroupFinalizer
	}
	return ""
}

// protect gives a new object its finalizer.
func protect(object runtime.Object, of func(runtime.Object) string) {
	finalizer := of(object)
	if finalizer == "" {
		return
	}
	meta := object.(metav1.Object)
	if all := meta.GetFinalizers(); !slices.Contains(all, finalizer) {
		meta.SetFinalizers(append(all, finalizer))
	}
}
