package persistentvolume

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// bind makes claim and volume name each other, as far as they do not. The volume is written first: a volume is given
// away by one write that only one claim can win, and a claim that names a volume never names another.
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

// claimedBy is a volume that is the claim's. It says whether that was this controller's choice.
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

// boundTo is a claim that has the volume; nil: it is so already.
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
