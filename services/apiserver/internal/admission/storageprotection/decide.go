package storageprotection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The finalizers that podgc takes away when nothing uses the object any more.
const (
	claimFinalizer  = "kubernetes.io/pvc-protection"
	volumeFinalizer = "kubernetes.io/pv-protection"
)

// protect gives a new claim or volume its finalizer. It leaves anything else alone.
func protect(object runtime.Object) {
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		add(&object.ObjectMeta, claimFinalizer)
	case *corev1.PersistentVolume:
		add(&object.ObjectMeta, volumeFinalizer)
	}
}

func add(meta *metav1.ObjectMeta, finalizer string) {
	if !slices.Contains(meta.Finalizers, finalizer) {
		meta.Finalizers = append(meta.Finalizers, finalizer)
	}
}
