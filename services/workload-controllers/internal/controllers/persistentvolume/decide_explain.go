package persistentvolume

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"keelson.dev/kit/events"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/localvolume"
)

// endings describe what ends the wait that an event of a claim reports, by the event's reason; for the reason that
// depends on the claim's class see consumed.
var endings = map[string]string{
	"FailedBinding":        "a PersistentVolume that suffices is free, or the claim is made anew with a storage class",
	"VolumeMismatch":       "the volume suffices for the claim, or the claim is made anew",
	"ExternalProvisioning": "that provisioner has made a volume and bound it",
	"ProvisioningFailed":   "that is put right; the scheduler may choose another node",
}

// claimAccount explains a decision about a claim.
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
	if stuck, ok := unprovisioned(in, plan); ok {
		a.Wait(stuck)
	}
	for _, e := range plan.Events {
		ends := endings[e.Reason]
		if e.Reason == waitForConsumer().Reason {
			ends = consumed(in.Class)
		}
		a.Wait(explain.Wait{Since: claim.CreationTimestamp.Time, Reason: e.Reason, For: "a volume: " + e.Message,
			Ends: ends})
	}
	if len(plan.Events) == 0 {
		a.Wait(explain.Wait{Since: claim.CreationTimestamp.Time, Reason: "VolumeMissing",
			For:  fmt.Sprintf("PersistentVolume %q, which spec.volumeName asks for", claim.Spec.VolumeName),
			Ends: "there is one of that name"})
	}
	return a
}

// consumed describes what ends the wait of a claim for its first Pod.
func consumed(class *storagev1.StorageClass) string {
	const given = "a Pod that uses the claim is given a node"
	switch class.Provisioner {
	case noProvisioner:
		return fmt.Sprintf("%s where a free PersistentVolume of StorageClass %q can be used: the provisioner %s makes "+
			"none", given, class.Name, noProvisioner)
	case localvolume.Driver:
		return given + ", on which this controller then makes the volume"
	}
	return fmt.Sprintf("%s, for which the provisioner %s then makes the volume", given, class.Provisioner)
}

// unprovisioned returns the wait of a claim that waits for its first Pod or for an external provisioner, and for
// which no volume will be created on any node under the present conditions; false if one may be.
func unprovisioned(in observedClaim, plan ClaimPlan) (explain.Wait, bool) {
	claim, class := in.Claim, in.Class
	if class == nil || !slices.ContainsFunc(plan.Events, func(e events.Event) bool {
		return e.Reason == waitForConsumer().Reason || e.Reason == externalProvisioning("").Reason
	}) {
		return explain.Wait{}, false
	}
	byHand := fmt.Sprintf("somebody makes a PersistentVolume of StorageClass %q that suffices", class.Name)
	if in.unheard {
		return explain.Wait{Since: claim.CreationTimestamp.Time, Reason: "ProvisionerMissing",
			For: fmt.Sprintf("the provisioner %s of StorageClass %q to run: nothing shows that it does, neither a "+
				"CSIDriver of that name nor a PersistentVolume that it has made", class.Provisioner, class.Name),
			Ends: "somebody installs it, or " + byHand}, true
	}
	if class.Provisioner != localvolume.Driver {
		return explain.Wait{}, false
	}
	why := refusalAnywhere(claim, class)
	return explain.Wait{Since: claim.CreationTimestamp.Time, Reason: "NeverProvisioned",
		For:  fmt.Sprintf("a volume that %s makes on no node: %s", localvolume.Driver, why),
		Ends: "that is put right in a claim that is made anew, or " + byHand}, why != ""
}

// volumeAccount explains a decision about a volume.
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
