package simnode

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
	"keelson.dev/kit/localvolume"
)

// protection keeps a PersistentVolume that a claim may still be bound to.
const protection = "kubernetes.io/pv-protection"

// followVolumes lets the PersistentVolumes of the nodes go when they are deleted, until ctx ends: there are no folders.
func (n *Nodes) followVolumes(ctx context.Context) {
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "persistentvolumes",
			metav1.NamespaceAll, fields.Everything()),
		ObjectType: &corev1.PersistentVolume{},
		Handler: follow.Handler(
			func(pv *corev1.PersistentVolume) { n.letGo(ctx, pv) }, func(*corev1.PersistentVolume) {}),
	})
	controller.RunWithContext(ctx)
}

// letGo takes the nodes' finalizer off a volume that is deleted and that no claim has. A version that is outdated, or
// an API server that does not answer, is tried again.
func (n *Nodes) letGo(ctx context.Context, pv *corev1.PersistentVolume) {
	for ctx.Err() == nil && n.mine[pv.Labels[localvolume.NodeLabel]] && pv.DeletionTimestamp != nil &&
		slices.Contains(pv.Finalizers, localvolume.FolderFinalizer) && !slices.Contains(pv.Finalizers, protection) {
		left := slices.DeleteFunc(slices.Clone(pv.Finalizers), func(f string) bool {
			return f == localvolume.FolderFinalizer
		})
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pv.UID,
			"resourceVersion": pv.ResourceVersion, "finalizers": left}})
		if err != nil {
			return
		}
		_, err = n.client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, patch,
			metav1.PatchOptions{})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return // gone, or seen again
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}
