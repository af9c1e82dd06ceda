package persistentvolume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/explain"
	"keelson.dev/kit/localvolume"
)

// endings are what ends the wait that an event of a claim tells of, by its reason.
var endings = map[string]string{
	"WaitForFirstConsumer": "a Pod that uses the claim is given a node",
	"FailedBinding":        "a PersistentVolume that suffices is free, or the claim is made anew with a storage class",
	"VolumeMismatch":       "the volume suffices for the claim, or the claim is made anew",
	"ExternalProvisioning": "that provisioner has made a volume and bound it",
	"ProvisioningFailed":   "that is put right; the scheduler may choose another node",
}

// claimAccount tells what a decision about a claim came to.
func claimAccount(in observedClaim, plan ClaimPlan) explain.Account {
	var a explain.Account
	claim := in.Claim
	switch {
	case plan.Create != nil:
		a.Do(1, "makes PersistentVolume %s on node %s for it", plan.Create.Name, in.Node.Name)
	case plan.Volume != nil:
		a.Do(1, "gives it PersistentVolume %s", plan.Volume.Name)
	case plan.Claim != nil:
		a.Do(1, "writes into the claim what has become of it")
	}
	switch phase := plan.Status.Phase; {
	case phase == corev1.ClaimBound:
		a.Settled = "it has PersistentVolume " + claim.Spec.VolumeName
		return a
	case phase == corev1.ClaimLost:
		a.Wait(explain.Wait{Reason: "ClaimLost", For: fmt.Sprintf("PersistentVolume %s, which is no longer its own",
			claim.Spec.VolumeName), Ends: "the claim is deleted and made anew: its data is lost"})
		return a
	case claim.DeletionTimestamp != nil:
		a.Settled = "it is being deleted and gets no volume"
		return a
	case len(a.Does) > 0:
		return a
	}
	for _, e := range plan.Events {
		a.Wait(explain.Wait{Since: claim.CreationTimestamp.Time, Reason: e.Reason, For: "a volume: " + e.Message,
			Ends: endings[e.Reason]})
	}
	if len(plan.Events) == 0 {
		a.Wait(explain.Wait{Since: claim.CreationTimestamp.Time, Reason: "VolumeMissing",
			For:  fmt.Sprintf("PersistentVolume %q, which spec.volumeName asks for", claim.Spec.VolumeName),
			Ends: "there is one of that name"})
	}
	return a
}

// volumeAccount tells what a decision about a volume came to.
func volumeAccount(in VolumeInput, plan VolumePlan) explain.Account {
	var a explain.Account
	volume := in.Volume
	switch {
	case plan.Delete:
		a.Do(1, "deletes it: its claim is gone, and its reclaim policy is Delete")
	case plan.Volume != nil:
		a.Do(1, "writes into the volume what has become of it")
	}
	if waitsForNode(volume) && !in.NodeGone {
		a.Wait(explain.Wait{Since: volume.DeletionTimestamp.Time, Reason: "FolderRemains", For: fmt.Sprintf(
			"node %s to remove the folder", volume.Labels[localvolume.NodeLabel]),
			Ends: "its nodeagent takes off the finalizer " + localvolume.FolderFinalizer + ", or the Node is deleted"})
	}
	var since time.Time
	if at := volume.Status.LastPhaseTransitionTime; at != nil {
		since = at.Time
	}
	switch phase := plan.Status.Phase; {
	case volume.DeletionTimestamp != nil || len(a.Does) > 0:
		a.Settled = "it is being deleted"
	case phase == corev1.VolumeBound:
		a.Settled = fmt.Sprintf("claim %s/%s has it", volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
	case phase == corev1.VolumeReleased:
		a.Wait(explain.Wait{Since: since, Reason: "Released", For: "somebody to decide about its data: its claim is " +
			"gone, and its reclaim policy is " + string(volume.Spec.PersistentVolumeReclaimPolicy),
			Ends: "the volume is deleted, or its spec.claimRef is cleared, which gives it to the next claim"})
	case phase == corev1.VolumeFailed:
		a.Wait(explain.Wait{Since: since, Reason: "Failed", For: "somebody to put it right: " + plan.Status.Message,
			Ends: "that is done"})
	default:
		a.Settled = "it is free for a claim that it suffices for"
	}
	return a
}
