package bootstrap

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaultclass"
	"keelson.dev/kit/localvolume"
)

// localClass is the class of volumes that are folders on a node, for a mesh that has these classes. It is the default
// where none of them is: the newest default wins, and this one must not win over an operator's.
func localClass(others []storagev1.StorageClass) *storagev1.StorageClass {
	class := &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: localvolume.ClassName},
		Provisioner:          localvolume.Driver,
		ReclaimPolicy:        ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		AllowVolumeExpansion: ptr.To(false),
	}
	for i := range others {
		if defaultclass.Storage.Mark(&others[i]) {
			return class
		}
	}
	class.Annotations = map[string]string{defaultclass.StorageAnnotation: "true"}
	return class
}
