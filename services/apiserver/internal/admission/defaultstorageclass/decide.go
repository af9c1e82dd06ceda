package defaultstorageclass

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/services/apiserver/internal/admission/newest"
)

// isDefault and wasDefault are the annotations by which a class says that it is for claims that name none.
const (
	isDefault  = "storageclass.kubernetes.io/is-default-class"
	wasDefault = "storageclass.beta.kubernetes.io/is-default-class"
)

// needsClass tells whether a new claim says nothing about its class. The empty class is an answer: none.
func needsClass(claim *corev1.PersistentVolumeClaim) bool {
	_, annotated := claim.Annotations[corev1.BetaStorageClassAnnotation]
	return claim.Spec.StorageClassName == nil && !annotated
}

// pick returns the class of claims that name none: of several defaults the newest, of those the first by name. It
// returns nil where no class is the default.
func pick(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	chosen, _ := newest.Of(classes, func(class *storagev1.StorageClass) bool {
		return class.Annotations[isDefault] == "true" || class.Annotations[wasDefault] == "true"
	})
	return chosen
}
