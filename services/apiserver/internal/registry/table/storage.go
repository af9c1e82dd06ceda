package table

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

var shortModes = map[corev1.PersistentVolumeAccessMode]string{
	corev1.ReadWriteOnce: "RWO", corev1.ReadOnlyMany: "ROX", corev1.ReadWriteMany: "RWX",
	corev1.ReadWriteOncePod: "RWOP",
}

// AccessModes shows each mode once, by its abbreviation.
func AccessModes(modes []corev1.PersistentVolumeAccessMode) string {
	short := make([]string, 0, len(shortModes))
	for _, mode := range []corev1.PersistentVolumeAccessMode{
		corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod,
	} {
		if slices.Contains(modes, mode) {
			short = append(short, shortModes[mode])
		}
	}
	return strings.Join(short, ",")
}

// StorageClass shows the class of a volume or claim: that of the annotation from before the field, else the field's.
func StorageClass(annotations map[string]string, class *string) string {
	if old, ok := annotations[corev1.BetaStorageClassAnnotation]; ok {
		return old
	}
	return ptr.Deref(class, "")
}
