package claimresize

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// grows reports whether a claim requests more storage than before.
func grows(claim, old *corev1.PersistentVolumeClaim) bool {
	size, before := claim.Spec.Resources.Requests[corev1.ResourceStorage],
		old.Spec.Resources.Requests[corev1.ResourceStorage]
	return size.Cmp(before) > 0
}

// className is the class by which a claim's volume was made, "" where it names none.
func className(claim *corev1.PersistentVolumeClaim) string {
	if class, annotated := claim.Annotations[corev1.BetaStorageClassAnnotation]; annotated {
		return class
	}
	return ptr.Deref(claim.Spec.StorageClassName, "")
}

// check refuses to let a claim grow whose class, nil if there is none, cannot give its volumes more room.
func check(class *storagev1.StorageClass) error {
	if class == nil || !ptr.Deref(class.AllowVolumeExpansion, false) {
		return errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the " +
			"pvc must support resize")
	}
	return nil
}
