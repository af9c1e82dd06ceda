package persistentvolume

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/events"
	"keelson.dev/kit/localvolume"
)

// VolumeInput is all that a decision about a volume depends on. DecideVolume changes none of it.
type VolumeInput struct {
	Now    time.Time
	Volume *corev1.PersistentVolume
	// Claim is the claim that the volume names by name and UID; nil if the volume names none or the claim is gone.
	Claim *corev1.PersistentVolumeClaim
	// NodeGone says that the Node with the volume's folder no longer exists.
	NodeGone bool
}

// VolumePlan names every effect of one pass over a volume, in order.
type VolumePlan struct {
	Events []events.Event
	// Volume is what the volume must become; nil means no change.
	Volume *corev1.PersistentVolume
	// Status is what its status must be.
	Status corev1.PersistentVolumeStatus
	// Delete says to delete the volume.
	Delete bool
}

// DecideVolume returns the state of a volume, and what happens to it when its claim is gone.
func DecideVolume(in VolumeInput) VolumePlan {
	volume := in.Volume
	plan := VolumePlan{Status: volume.Status}
	phase, message := corev1.VolumeAvailable, ""
	switch ref, claim := volume.Spec.ClaimRef, in.Claim; {
	case ref == nil || ref.UID == "":
	case claim == nil:
		phase, message = plan.reclaim(in)
	case claim.Spec.VolumeName == "":
		// It is about to be bound.
		phase, message = volume.Status.Phase, volume.Status.Message
	case claim.Spec.VolumeName == volume.Name:
		phase = corev1.VolumeBound
	case isOurs(volume) && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		// It was created for the claim, which got another volume.
		phase, plan.Delete = corev1.VolumeReleased, volume.DeletionTimestamp == nil
	default:
		plan.Volume = released(volume)
	}
	if status := &plan.Status; status.Phase != phase || status.Message != message {
		if status.Phase != phase {
			status.LastPhaseTransitionTime = &metav1.Time{Time: in.Now}
		}
		status.Phase, status.Message = phase, message
	}
	if in.NodeGone && waitsForNode(volume) {
		plan.Volume = volume.DeepCopy()
		plan.Volume.Finalizers = slices.DeleteFunc(plan.Volume.Finalizers,
			func(finalizer string) bool { return finalizer == localvolume.FolderFinalizer })
		plan.Events = append(plan.Events, nodeGone(volume.Labels[localvolume.NodeLabel], localvolume.FolderFinalizer))
	}
	return plan
}

// reclaim applies the reclaim policy to a volume whose claim is gone, and returns its phase.
func (p *VolumePlan) reclaim(in VolumeInput) (phase corev1.PersistentVolumePhase, message string) {
	volume := in.Volume
	failed := func(e events.Event) (corev1.PersistentVolumePhase, string) {
		if volume.Status.Phase != corev1.VolumeFailed {
			p.Events = append(p.Events, e)
		}
		return corev1.VolumeFailed, e.Message
	}
	switch provisioner := volume.Annotations[annotationProvisionedBy]; {
	case volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle:
		return failed(recycleFailed())
	case volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain:
	case isOurs(volume):
		p.Delete = volume.DeletionTimestamp == nil
	case provisioner == "":
		return failed(deleteFailed())
	case volume.Status.Phase == corev1.VolumeFailed:
		// Its provisioner set the phase.
		return corev1.VolumeFailed, volume.Status.Message
	}
	return corev1.VolumeReleased, ""
}

// released returns the volume without its reference to the claim. A volume that users kept for the claim stays kept
// for the claim's name.
func released(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	next := volume.DeepCopy()
	if _, ours := volume.Annotations[annotationByController]; ours {
		delete(next.Annotations, annotationByController)
		next.Spec.ClaimRef = nil
	} else {
		next.Spec.ClaimRef.UID, next.Spec.ClaimRef.ResourceVersion = "", ""
	}
	return next
}

// waitsForNode reports whether a volume that is being deleted is kept until its Node has removed the folder.
func waitsForNode(volume *corev1.PersistentVolume) bool {
	return volume.DeletionTimestamp != nil && slices.Contains(volume.Finalizers, localvolume.FolderFinalizer)
}

// isOurs reports whether a volume is a folder on a node.
func isOurs(volume *corev1.PersistentVolume) bool {
	return volume.Spec.CSI != nil && volume.Spec.CSI.Driver == localvolume.Driver
}
