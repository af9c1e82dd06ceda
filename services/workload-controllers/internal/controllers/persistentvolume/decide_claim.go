package persistentvolume

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/events"
)

// ClaimInput is all that a decision about a claim depends on. DecideClaim changes none of it.
type ClaimInput struct {
	Claim *corev1.PersistentVolumeClaim
	// Class is the claim's class; nil if it does not exist. Default is the class of claims that name none.
	Class, Default *storagev1.StorageClass
	// Volume is the volume that the claim names; nil if it does not exist.
	Volume *corev1.PersistentVolume
	// Claiming are the volumes that name the claim.
	Claiming []*corev1.PersistentVolume
	// Free is the smallest free volume that suits; nil if there is none, or if the claim takes no free volume
	// (TakesFree).
	Free *corev1.PersistentVolume
	// Node is the node that the scheduler has chosen; nil if it is gone.
	Node *corev1.Node
}

// ClaimPlan names every effect of one pass over a claim, in order.
type ClaimPlan struct {
	Events []events.Event
	// Create is a volume to create for the claim.
	Create *corev1.PersistentVolume
	// Volume and Claim are what the volume and the claim must become; nil means no change.
	Volume *corev1.PersistentVolume
	Claim  *corev1.PersistentVolumeClaim
	// Status is what the claim's status must be.
	Status corev1.PersistentVolumeClaimStatus
}

// DecideClaim finds a volume for a claim, or decides what the claim waits for.
func DecideClaim(in ClaimInput) ClaimPlan {
	switch claim := in.Claim; {
	case isBindingComplete(claim):
		return decideBound(in)
	case claim.DeletionTimestamp != nil:
		return ClaimPlan{Status: claim.Status}
	case claim.Spec.VolumeName != "":
		return decideNamed(in)
	}
	return decideWaiting(in)
}

// decideBound keeps a bound claim with its volume.
func decideBound(in ClaimInput) ClaimPlan {
	claim, volume := in.Claim, in.Volume
	switch {
	case claim.Spec.VolumeName == "":
		return lost(claim, claimLost("reference to PersistentVolume"))
	case volume == nil:
		return lost(claim, claimLost("its PersistentVolume"))
	case volume.Spec.ClaimRef != nil && !names(volume, claim):
		return lost(claim, claimMisbound())
	}
	return bind(claim, volume)
}

// decideNamed binds a claim to the volume that it requests by name.
func decideNamed(in ClaimInput) ClaimPlan {
	claim, volume := in.Claim, in.Volume
	switch {
	case volume == nil:
		return pending(claim)
	case volume.Spec.ClaimRef == nil:
		if why := mismatch(volume, claim); why != "" {
			return pending(claim, volumeMismatch(volume.Name, why))
		}
	case !names(volume, claim):
		return pending(claim, volumeTaken(volume.Name))
	}
	return bind(claim, volume)
}

// decideWaiting binds a claim to a volume that is kept for it, or to the smallest that suits, or has one created.
func decideWaiting(in ClaimInput) ClaimPlan {
	claim := in.Claim
	kept, mismatched := keptFor(claim, in.Claiming)
	switch {
	case kept != nil:
		return bind(claim, kept)
	case in.Free != nil:
		return bind(claim, in.Free)
	}
	var plan ClaimPlan
	switch _, chosen := claim.Annotations[annotationNode]; {
	case !saysClass(claim) && in.Default != nil:
		plan = pending(claim)
		plan.Claim = claim.DeepCopy()
		plan.Claim.Spec.StorageClassName = ptr.To(in.Default.Name)
	case waitsForConsumer(in.Class) && !chosen:
		plan = pending(claim, waitForConsumer())
	case classOf(claim) == "":
		plan = pending(claim, noVolume())
	default:
		plan = provision(in)
	}
	plan.Events = append(mismatched, plan.Events...)
	return plan
}

// TakesFree reports whether a claim takes the smallest free volume: it names no volume, no volume is kept for it,
// and its class does not leave the choice to the scheduler.
func TakesFree(in ClaimInput) bool {
	kept, _ := keptFor(in.Claim, in.Claiming)
	return isWaiting(in.Claim) && kept == nil && !waitsForConsumer(in.Class)
}

func waitsForConsumer(class *storagev1.StorageClass) bool {
	return class != nil && ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) ==
		storagev1.VolumeBindingWaitForFirstConsumer
}

// keptFor returns the volume that names the claim: one with its UID before one with only its name, and the smallest
// of several. It also returns events about such volumes that do not suffice.
func keptFor(claim *corev1.PersistentVolumeClaim, claiming []*corev1.PersistentVolume) (*corev1.PersistentVolume,
	[]events.Event) {
	var told []events.Event
	var kept *corev1.PersistentVolume
	for _, volume := range slices.SortedFunc(slices.Values(claiming), firstOfKept) {
		if !names(volume, claim) {
			continue
		}
		if why := mismatchOfKept(volume, claim); why != "" {
			told = append(told, volumeMismatch(volume.Name, why))
		} else if kept == nil {
			kept = volume
		}
	}
	return kept, told
}

func firstOfKept(a, b *corev1.PersistentVolume) int {
	known := func(v *corev1.PersistentVolume) int {
		if v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID != "" {
			return 0
		}
		return 1
	}
	return cmp.Or(known(a)-known(b), bySize(a, b))
}

// pending is the plan of a claim that waits.
func pending(claim *corev1.PersistentVolumeClaim, told ...events.Event) ClaimPlan {
	plan := ClaimPlan{Status: claim.Status, Events: told}
	plan.Status.Phase = corev1.ClaimPending
	return plan
}

// lost is the plan of a claim whose volume is no longer its own. The event is emitted once.
func lost(claim *corev1.PersistentVolumeClaim, e events.Event) ClaimPlan {
	plan := ClaimPlan{Status: claim.Status}
	if plan.Status.Phase != corev1.ClaimLost {
		plan.Events = []events.Event{e}
	}
	plan.Status.Phase, plan.Status.AccessModes, plan.Status.Capacity = corev1.ClaimLost, nil, nil
	return plan
}
