package attachdetach

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"keelson.dev/kit/controller"
	"keelson.dev/services/workload-controllers/internal/storeindex"
)

type queue = controller.Queue[target]

// on calls wake with each object that is added, removed, or changed in a way that matters; after a change, with
// its previous state too.
func on[O client.Object](same func(before, now O) bool, wake func(O, queue)) handler.TypedFuncs[O, target] {
	each := controller.Each(wake)
	update := each.UpdateFunc
	each.UpdateFunc = func(ctx context.Context, e event.TypedUpdateEvent[O], q queue) {
		if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || !same(e.ObjectOld, e.ObjectNew) {
			update(ctx, e, q)
		}
	}
	return each
}

// onPod wakes up the volumes of a bound Pod, and its node.
func (c *Controller) onPod() handler.TypedFuncs[*corev1.Pod, target] {
	return on(func(before, now *corev1.Pod) bool {
		return before.Spec.NodeName == now.Spec.NodeName && before.Status.Phase == now.Status.Phase &&
			before.DeletionTimestamp.Equal(now.DeletionTimestamp)
	}, c.wakePod)
}

func (c *Controller) wakePod(pod *corev1.Pod, q queue) {
	if pod.Spec.NodeName == "" || len(claimKeys(pod)) == 0 {
		return
	}
	for _, volume := range c.stores.volumesOf(pod) {
		q.Add(target{volume: volume})
	}
	q.Add(target{node: pod.Spec.NodeName})
}

// onClaim wakes up the volumes and nodes of the Pods that have the claim.
func (c *Controller) onClaim() handler.TypedFuncs[*corev1.PersistentVolumeClaim, target] {
	return on(func(before, now *corev1.PersistentVolumeClaim) bool {
		return before.Spec.VolumeName == now.Spec.VolumeName
	}, func(claim *corev1.PersistentVolumeClaim, q queue) {
		if volume, ok := c.stores.volumeOfPV(claim.Spec.VolumeName); ok {
			q.Add(target{volume: volume})
		}
		key := storeindex.Key(claim.Namespace, claim.Name)
		for _, pod := range storeindex.Find[corev1.Pod](c.stores.pods, podsByClaim, key) {
			c.wakePod(pod, q)
		}
	})
}

// onPV wakes up the volume, and the nodes with attachments of it.
func (c *Controller) onPV() handler.TypedFuncs[*corev1.PersistentVolume, target] {
	return on(func(before, now *corev1.PersistentVolume) bool {
		return before.Annotations[reservedFor] == now.Annotations[reservedFor] &&
			slices.Equal(before.Spec.AccessModes, now.Spec.AccessModes) &&
			apiequality.Semantic.DeepEqual(before.Spec.ClaimRef, now.Spec.ClaimRef)
	}, func(pv *corev1.PersistentVolume, q queue) {
		volume, ok := volumeOf(pv)
		if !ok {
			return
		}
		q.Add(target{volume: volume})
		for _, a := range c.stores.attachmentsOf(volume, []*corev1.PersistentVolume{pv}) {
			q.Add(target{node: a.Spec.NodeName})
		}
	})
}

// onAttachment wakes up the node, and the volume, since other nodes may wait for it.
func (c *Controller) onAttachment() handler.TypedFuncs[*storagev1.VolumeAttachment, target] {
	return on(func(before, now *storagev1.VolumeAttachment) bool {
		return before.DeletionTimestamp.Equal(now.DeletionTimestamp) &&
			apiequality.Semantic.DeepEqual(before.Status, now.Status)
	}, func(a *storagev1.VolumeAttachment, q queue) {
		q.Add(target{node: a.Spec.NodeName})
		if volume, ok := c.stores.volumeOfPV(pvName(a)); ok {
			q.Add(target{volume: volume})
			return
		}
		for _, pv := range storeindex.Find[corev1.PersistentVolume](c.stores.pvs, pvsByDriver, a.Spec.Attacher) {
			if volume, _ := volumeOf(pv); volume.attachment(a.Spec.NodeName) == a.Name {
				q.Add(target{volume: volume})
			}
		}
	})
}

// onNode wakes up a node when its reported volumes change, and the volumes of its Pods when it appears or may have
// volumes again.
func (c *Controller) onNode() handler.TypedFuncs[*corev1.Node, target] {
	return on(func(before, now *corev1.Node) bool {
		return isOutOfService(before) == isOutOfService(now) &&
			apiequality.Semantic.DeepEqual(before.Status, now.Status)
	}, func(node *corev1.Node, q queue) {
		q.Add(target{node: node.Name})
		for _, pod := range storeindex.Find[corev1.Pod](c.stores.pods, podsByNode, node.Name) {
			c.wakePod(pod, q)
		}
	})
}

// onDriver wakes up the volumes of a driver.
func (c *Controller) onDriver() handler.TypedFuncs[*storagev1.CSIDriver, target] {
	return on(func(before, now *storagev1.CSIDriver) bool {
		return needsAttaching(before.Name, before) == needsAttaching(now.Name, now)
	}, func(driver *storagev1.CSIDriver, q queue) {
		for _, pv := range storeindex.Find[corev1.PersistentVolume](c.stores.pvs, pvsByDriver, driver.Name) {
			if volume, ok := volumeOf(pv); ok {
				q.Add(target{volume: volume})
			}
		}
	})
}
