package persistentvolume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/localvolume"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/write"
)

func (c *Controller) volumeSteps() *pass.Steps[*corev1.PersistentVolume, VolumeInput, VolumePlan] {
	return &pass.Steps[*corev1.PersistentVolume, VolumeInput, VolumePlan]{
		Reader: c.client, New: func() *corev1.PersistentVolume { return &corev1.PersistentVolume{} }, Gate: c.gate,
		Observe: c.observeVolume, Decide: DecideVolume, Apply: c.applyVolume,
	}
}

// observeVolume reads the input of a decision. All of it is shared with the cache.
func (c *Controller) observeVolume(ctx context.Context, volume *corev1.PersistentVolume) (VolumeInput, bool, error) {
	in := VolumeInput{Now: c.now(), Volume: volume}
	var err error
	if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" {
		if in.Claim, err = c.claimOf(ctx, volume); err != nil {
			return in, false, err
		}
	}
	if node := volume.Labels[localvolume.NodeLabel]; node != "" && waitsForNode(volume) {
		found, err := c.node(ctx, node)
		if err != nil {
			return in, false, err
		}
		in.NodeGone = found == nil
	}
	return in, true, nil
}

// claimOf returns the claim that the volume names, or nil if it is gone. The apiserver must confirm that before a
// volume is released; a deleted claim never comes back.
func (c *Controller) claimOf(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim,
	error) {
	ref := volume.Spec.ClaimRef
	cached := storeindex.Get[corev1.PersistentVolumeClaim](c.stores.claims, storeindex.Key(ref.Namespace, ref.Name))
	if cached != nil && cached.UID == ref.UID {
		return cached, nil
	}
	phase, deletes := volume.Status.Phase, isOurs(volume) && volume.DeletionTimestamp == nil
	if !deletes && (phase == corev1.VolumeReleased || phase == corev1.VolumeFailed) {
		return nil, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := c.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("looking for the claim %s/%s: %w", ref.Namespace, ref.Name, err)
	case err != nil || claim.UID != ref.UID:
		return nil, nil
	}
	return claim, nil
}

// applyVolume carries out the plan: the volume, its status, its deletion.
func (c *Controller) applyVolume(ctx context.Context, in VolumeInput, plan VolumePlan) error {
	volume := in.Volume
	for _, e := range plan.Events {
		c.recorder.Record(volume, e)
	}
	if plan.Volume != nil {
		volume = plan.Volume.DeepCopy()
		if err := c.volumes.Update(ctx, volume.UID, volume); err != nil {
			return gone(err, "writing the volume")
		}
	}
	// A volume that loses its last finalizer is gone before its status can be written, which is no error.
	of := func(v *corev1.PersistentVolume) *corev1.PersistentVolumeStatus { return &v.Status }
	if plan.Delete {
		return c.deleteVolume(ctx, volume, plan.Status, of)
	}
	_, err := write.Status(ctx, c.volumes, volume, plan.Status, of)
	return err
}

// deleteVolume sets the phase Released, then deletes exactly that version of the volume.
func (c *Controller) deleteVolume(ctx context.Context, volume *corev1.PersistentVolume,
	status corev1.PersistentVolumeStatus, of func(*corev1.PersistentVolume) *corev1.PersistentVolumeStatus) error {
	written, err := write.Status(ctx, c.volumes, volume, status, of)
	if err != nil || written {
		// The next pass, triggered by the new status, checks again before it deletes.
		return err
	}
	if err := c.volumes.Delete(ctx, volume.UID, volume.DeepCopy()); err != nil {
		return fmt.Errorf("deleting PersistentVolume %s: %w", volume.Name, err)
	}
	return nil
}
