package persistentvolume

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// classOf returns the name of a claim's class, or "".
func classOf(claim *corev1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return ptr.Deref(claim.Spec.StorageClassName, "")
}

// saysClass reports whether a claim sets its class; the empty class counts as set.
func saysClass(claim *corev1.PersistentVolumeClaim) bool {
	_, annotated := claim.Annotations[corev1.BetaStorageClassAnnotation]
	return annotated || claim.Spec.StorageClassName != nil
}

func classOfVolume(volume *corev1.PersistentVolume) string {
	if class, ok := volume.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return volume.Spec.StorageClassName
}

// names reports whether a volume names the claim. A volume that was reserved before the claim existed has no UID in
// its reference.
func names(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name &&
		(ref.UID == "" || ref.UID == claim.UID)
}

// isFree reports whether any claim that the volume suffices for may have it.
func isFree(volume *corev1.PersistentVolume) bool {
	return volume.Spec.ClaimRef == nil && volume.Status.Phase == corev1.VolumeAvailable &&
		volume.DeletionTimestamp == nil
}

// isWaiting reports whether a claim neither has nor names a volume.
func isWaiting(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName == "" && !isBindingComplete(claim) && claim.DeletionTimestamp == nil
}

func isBindingComplete(claim *corev1.PersistentVolumeClaim) bool {
	_, complete := claim.Annotations[annotationBound]
	return complete
}

// shape is what must be equal in a volume and its claim. It is comparable.
type shape struct{ class, mode, attributes string }

func shapeOf(volume *corev1.PersistentVolume) shape {
	return shape{classOfVolume(volume), mode(volume.Spec.VolumeMode),
		ptr.Deref(volume.Spec.VolumeAttributesClassName, "")}
}

func shapeWanted(claim *corev1.PersistentVolumeClaim) shape {
	return shape{classOf(claim), mode(claim.Spec.VolumeMode), ptr.Deref(claim.Spec.VolumeAttributesClassName, "")}
}

func mode(m *corev1.PersistentVolumeMode) string {
	return string(ptr.Deref(m, corev1.PersistentVolumeFilesystem))
}

func size(volume *corev1.PersistentVolume) resource.Quantity {
	return volume.Spec.Capacity[corev1.ResourceStorage]
}

func sizeWanted(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// bySize orders volumes by size, then by name.
func bySize(a, b *corev1.PersistentVolume) int {
	sizeA, sizeB := size(a), size(b)
	if order := sizeA.Cmp(sizeB); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

// allows reports whether a volume offers all access modes that the claim requests.
func allows(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return !slices.ContainsFunc(claim.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(volume.Spec.AccessModes, m)
	})
}

// selectorOf returns the selector of the volumes that a claim may have. An invalid selector, which the apiserver
// refuses, selects none.
func selectorOf(claim *corev1.PersistentVolumeClaim) labels.Selector {
	if claim.Spec.Selector == nil {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// suits reports whether a claim that waits for any volume can have this free volume.
func suits(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return shapeOf(volume) == shapeWanted(claim) && mismatch(volume, claim) == "" &&
		selectorOf(claim).Matches(labels.Set(volume.Labels))
}

// mismatch returns why a claim cannot have the volume that it names, or "" if it can.
func mismatch(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	if classOfVolume(volume) != classOf(claim) {
		return "storageClassName does not match"
	}
	if !allows(volume, claim) {
		return "incompatible accessMode"
	}
	return mismatchOfKept(volume, claim)
}

// mismatchOfKept returns why a claim cannot have a volume that is kept for it, or "" if it can. It ignores class and
// access modes: the user who keeps the volume answers for them.
func mismatchOfKept(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	has, wants := size(volume), sizeWanted(claim)
	switch {
	case volume.DeletionTimestamp != nil:
		return "the volume is marked for deletion"
	case has.Cmp(wants) < 0:
		return "requested PV is too small"
	case mode(volume.Spec.VolumeMode) != mode(claim.Spec.VolumeMode):
		return "incompatible volumeMode"
	case shapeOf(volume).attributes != shapeWanted(claim).attributes:
		return "VolumeAttributesClassName does not match"
	}
	return ""
}
