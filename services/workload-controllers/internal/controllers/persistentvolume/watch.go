package persistentvolume

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/defaultclass"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/wake"
)

type (
	claimType  = *corev1.PersistentVolumeClaim
	volumeType = *corev1.PersistentVolume
)

// onClaim wakes up a changed claim and its volumes.
func (c *Controller) onClaim() handler.TypedFuncs[claimType, reconcile.Request] {
	return handler.TypedFuncs[claimType, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[claimType], q wake.Queue) {
			q.Add(wake.Request(e.Object.Namespace, e.Object.Name))
			c.wakeVolumes(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[claimType], q wake.Queue) {
			q.Add(wake.Request(e.ObjectNew.Namespace, e.ObjectNew.Name))
			if e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Spec.VolumeName != e.ObjectNew.Spec.VolumeName {
				c.wakeVolumes(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[claimType], q wake.Queue) {
			c.gate.Forget(e.Object.UID)
			c.wakeVolumes(e.Object, q)
		},
	}
}

// wakeVolumes wakes up the volumes that name the claim, and the one that it names.
func (c *Controller) wakeVolumes(claim claimType, q wake.Queue) {
	for _, volume := range storeindex.Find[corev1.PersistentVolume](c.stores.volumes, byClaim,
		storeindex.Key(claim.Namespace, claim.Name)) {
		q.Add(wake.Request("", volume.Name))
	}
	if claim.Spec.VolumeName != "" {
		q.Add(wake.Request("", claim.Spec.VolumeName))
	}
}

// onVolume wakes up a changed volume, the claims related to it, and, once it is free, the claims that it would suit.
func (c *Controller) onVolume() handler.TypedFuncs[volumeType, reconcile.Request] {
	return handler.TypedFuncs[volumeType, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[volumeType], q wake.Queue) {
			q.Add(wake.Request("", e.Object.Name))
			c.changed(e.Object, isFree(e.Object), q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[volumeType], q wake.Queue) {
			before, now := e.ObjectOld, e.ObjectNew
			q.Add(wake.Request("", now.Name))
			if isFor := before.Spec.ClaimRef; isFor != nil {
				q.Add(wake.Request(isFor.Namespace, isFor.Name))
			}
			same := isFree(before) && maps.Equal(before.Labels, now.Labels) &&
				apiequality.Semantic.DeepEqual(before.Spec, now.Spec)
			c.changed(now, isFree(now) && !same, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[volumeType], q wake.Queue) {
			c.gate.Forget(e.Object.UID)
			c.free.remove(e.Object.Name)
			c.wakeClaims(e.Object, q)
		},
	}
}

// changed puts a volume into the index and wakes up claims; offered says that more claims than before may have it.
func (c *Controller) changed(volume volumeType, offered bool, q wake.Queue) {
	c.free.put(volume)
	c.wakeClaims(volume, q)
	if !offered {
		return
	}
	class := classOfVolume(volume)
	if waitsForConsumer(storeindex.Get[storagev1.StorageClass](c.stores.classes, class)) {
		return
	}
	for _, claim := range storeindex.Find[corev1.PersistentVolumeClaim](c.stores.claims, byWaiting, class) {
		if suits(volume, claim) {
			q.Add(wake.Request(claim.Namespace, claim.Name))
		}
	}
}

// wakeClaims wakes up the claim that a volume names, and those that name the volume.
func (c *Controller) wakeClaims(volume volumeType, q wake.Queue) {
	if ref := volume.Spec.ClaimRef; ref != nil {
		q.Add(wake.Request(ref.Namespace, ref.Name))
	}
	for _, claim := range storeindex.Find[corev1.PersistentVolumeClaim](c.stores.claims, byVolume, volume.Name) {
		q.Add(wake.Request(claim.Namespace, claim.Name))
	}
}

// onClass wakes up the claims that wait for the class, and those that wait for any if it is the default.
func (c *Controller) onClass() handler.TypedFuncs[*storagev1.StorageClass, reconcile.Request] {
	wakeWaiting := func(class *storagev1.StorageClass, q wake.Queue) {
		for _, claim := range storeindex.Find[corev1.PersistentVolumeClaim](c.stores.claims, byWaiting, class.Name) {
			q.Add(wake.Request(claim.Namespace, claim.Name))
		}
		if !defaultclass.Storage.Mark(class) {
			return
		}
		for _, claim := range storeindex.Find[corev1.PersistentVolumeClaim](c.stores.claims, byWaiting, "") {
			if !saysClass(claim) {
				q.Add(wake.Request(claim.Namespace, claim.Name))
			}
		}
	}
	return handler.TypedFuncs[*storagev1.StorageClass, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*storagev1.StorageClass], q wake.Queue) {
			wakeWaiting(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*storagev1.StorageClass], q wake.Queue) {
			wakeWaiting(e.ObjectNew, q)
		},
	}
}

// onNode wakes up the volumes that wait for a deleted Node.
func (c *Controller) onNode() handler.TypedFuncs[*corev1.Node, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Node], q wake.Queue) {
			for _, volume := range storeindex.Find[corev1.PersistentVolume](c.stores.volumes, byNode, e.Object.Name) {
				if volume.DeletionTimestamp != nil {
					q.Add(wake.Request("", volume.Name))
				}
			}
		},
	}
}
