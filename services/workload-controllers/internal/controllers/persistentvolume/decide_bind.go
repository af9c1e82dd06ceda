package persistentvolume

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// bind makes claim and volume name each other, as far as they do not yet. It writes the volume first: a single
// write, which only one claim can win, assigns the volume, and a claim that names a volume never names another.
func bind(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) ClaimPlan {
	plan := ClaimPlan{Claim: boundTo(claim, volume), Status: claim.Status}
	if ref := volume.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		plan.Volume = claimedBy(volume, claim)
	}
	status := &plan.Status
	if _, known := status.Capacity[corev1.ResourceStorage]; status.Phase != corev1.ClaimBound || !known {
		status.Capacity = maps.Clone(volume.Spec.Capacity)
		status.CurrentVolumeAttributesClassName = volume.Spec.VolumeAttributesClassName
	}
	status.Phase, status.AccessModes = corev1.ClaimBound, volume.Spec.AccessModes
	return plan
}

// claimedBy returns the volume with a reference to the claim, marked if this controller chose it.
func claimedBy(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	next := volume.DeepCopy()
	if volume.Spec.ClaimRef == nil {
		annotate(&next.Annotations, annotationByController)
	}
	next.Spec.ClaimRef = reference(claim)
	return next
}

func reference(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace,
		Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion}
}

// boundTo returns the claim bound to the volume; nil if it is bound already.
func boundTo(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	if isBindingComplete(claim) && claim.Spec.VolumeName == volume.Name {
		return nil
	}
	next := claim.DeepCopy()
	if claim.Spec.VolumeName == "" {
		annotate(&next.Annotations, annotationByController)
		next.Spec.VolumeName = volume.Name
	}
	annotate(&next.Annotations, annotationBound)
	return next
}

func annotate(annotations *map[string]string, key string) {
	if *annotations == nil {
		*annotations = map[string]string{}
	}
	(*annotations)[key] = yes
}
