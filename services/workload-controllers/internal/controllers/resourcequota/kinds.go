package resourcequota

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/follow"
	"keelson.dev/kit/quota"
)

// syncTimeout bounds the wait for the objects of a kind; the pass is retried.
const syncTimeout = 10 * time.Second

// Kinds watches the objects other than Pods that quotas count: Services, PersistentVolumeClaims and ResourceClaims
// whole, all other kinds by their metadata only.
type Kinds struct {
	cache  cache.Cache
	mapper meta.RESTMapper
	live   client.Reader
	// changed is called with an object that was added or changed, gone with one that was deleted.
	changed, gone func(kind schema.GroupResource, object client.Object)

	mu      sync.Mutex // guards what follows
	watched map[schema.GroupResource]*watched
}

type watched struct {
	object       client.Object
	informer     toolscache.SharedIndexInformer
	registration toolscache.ResourceEventHandlerRegistration
}

// Ensure waits until all objects of the kind have been seen. It returns false for a kind that is not served.
func (k *Kinds) Ensure(ctx context.Context, kind schema.GroupResource) (bool, error) {
	k.mu.Lock()
	w := k.watched[kind]
	k.mu.Unlock()
	if w == nil {
		object, err := k.objectOf(ctx, kind)
		if err != nil || object == nil {
			return false, err
		}
		if w, err = k.watch(ctx, kind, object); err != nil {
			return false, err
		}
	}
	waiting, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if !toolscache.WaitForCacheSync(waiting.Done(), w.registration.HasSynced) {
		return false, fmt.Errorf("not all %s have been read yet", kind)
	}
	return true, nil
}

// objectOf returns an empty object of the kind, and nil for a kind that is not served or cannot be listed.
func (k *Kinds) objectOf(ctx context.Context, kind schema.GroupResource) (client.Object, error) {
	switch kind {
	case quota.Services:
		return &corev1.Service{}, nil
	case quota.Claims:
		return &corev1.PersistentVolumeClaim{}, nil
	}
	gvk, err := k.mapper.KindFor(kind.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("finding the kind of %s: %w", kind, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = k.live.List(ctx, list, client.Limit(1))
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind, err)
	}
	if kind == quota.Devices {
		return &resourcev1.ResourceClaim{}, nil
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

func (k *Kinds) watch(ctx context.Context, kind schema.GroupResource, object client.Object) (*watched, error) {
	informer, err := controller.Informer(ctx, k.cache, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.watched[kind]; w != nil {
		return w, nil
	}
	registration, err := informer.AddEventHandler(follow.Handler(
		func(o client.Object) { k.changed(kind, o) }, func(o client.Object) { k.gone(kind, o) }))
	if err != nil {
		return nil, fmt.Errorf("following %s: %w", kind, err)
	}
	w := &watched{object, informer, registration}
	k.watched[kind] = w
	return w, nil
}

// Visit calls visit with every object of the namespace.
func (k *Kinds) Visit(namespace string, visit func(schema.GroupResource, client.Object)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, w := range k.watched {
		objects, err := w.informer.GetIndexer().ByIndex(toolscache.NamespaceIndex, namespace)
		if err != nil {
			return fmt.Errorf("listing %s: %w", kind, err)
		}
		for _, o := range objects {
			if object, ok := o.(client.Object); ok {
				visit(kind, object)
			}
		}
	}
	return nil
}

// Keep stops the watches of kinds that are not needed; nil stops all.
func (k *Kinds) Keep(ctx context.Context, needed map[schema.GroupResource]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, w := range k.watched {
		if needed[kind] {
			continue
		}
		// Both fail only for an object that is not watched anyway.
		_ = w.informer.RemoveEventHandler(w.registration)
		if _, own := w.object.(*metav1.PartialObjectMetadata); own {
			_ = k.cache.RemoveInformer(ctx, w.object)
		}
		delete(k.watched, kind)
	}
}
