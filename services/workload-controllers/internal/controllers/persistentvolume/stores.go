package persistentvolume

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"keelson.dev/kit/localvolume"
	"keelson.dev/services/workload-controllers/internal/gate"
)

// The indexes of claims by the volume that they name and, while they wait for any, by class; of volumes by the claim
// that they name and by the node that has their folder.
const (
	byVolume  = "keelson.dev/volume"
	byWaiting = "keelson.dev/waiting"
	byClaim   = "keelson.dev/claim"
	byNode    = "keelson.dev/node"
)

// indexing keeps two terms of one process from adding an index at once.
var indexing sync.Mutex

// stores are the caches behind the claims, volumes and classes. What they return is shared: read only.
type stores struct {
	claims, volumes, classes toolscache.Indexer
}

func storesOf(from cache.Cache) (stores, error) {
	var s stores
	var err error
	if s.claims, err = gate.StoreOf(from, &corev1.PersistentVolumeClaim{}); err != nil {
		return s, err
	}
	if s.volumes, err = gate.StoreOf(from, &corev1.PersistentVolume{}); err != nil {
		return s, err
	}
	if s.classes, err = gate.StoreOf(from, &storagev1.StorageClass{}); err != nil {
		return s, err
	}
	return s, s.index()
}

// index adds the indexes where they are missing.
func (s stores) index() error {
	indexing.Lock()
	defer indexing.Unlock()
	for _, i := range []struct {
		store toolscache.Indexer
		name  string
		value toolscache.IndexFunc
	}{
		{s.claims, byVolume, valuesOf(func(c *corev1.PersistentVolumeClaim) (string, bool) {
			return c.Spec.VolumeName, c.Spec.VolumeName != ""
		})},
		{s.claims, byWaiting, valuesOf(func(c *corev1.PersistentVolumeClaim) (string, bool) {
			return classOf(c), isWaiting(c)
		})},
		{s.volumes, byClaim, valuesOf(func(v *corev1.PersistentVolume) (string, bool) {
			if v.Spec.ClaimRef == nil {
				return "", false
			}
			return key(v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name), true
		})},
		{s.volumes, byNode, valuesOf(func(v *corev1.PersistentVolume) (string, bool) {
			return v.Labels[localvolume.NodeLabel], v.Labels[localvolume.NodeLabel] != ""
		})},
	} {
		if _, ok := i.store.GetIndexers()[i.name]; ok {
			continue
		}
		if err := i.store.AddIndexers(toolscache.Indexers{i.name: i.value}); err != nil {
			return fmt.Errorf("indexing by %s: %w", i.name, err)
		}
	}
	return nil
}

func valuesOf[O any](value func(O) (string, bool)) toolscache.IndexFunc {
	return func(item any) ([]string, error) {
		object, ok := item.(O)
		if !ok {
			return nil, fmt.Errorf("indexing a %T", item)
		}
		if text, has := value(object); has {
			return []string{text}, nil
		}
		return nil, nil
	}
}

func key(namespace, name string) string {
	return toolscache.ObjectName{Namespace: namespace, Name: name}.String()
}

// get returns the object, or nil.
func get[O any](store toolscache.Indexer, key string) *O {
	// A store in memory does not fail.
	item, _, _ := store.GetByKey(key)
	object, _ := item.(*O)
	return object
}

// find returns the objects that have the value in the index.
func find[O any](store toolscache.Indexer, index, value string) []*O {
	// The only error is that the index does not exist.
	items, _ := store.ByIndex(index, value)
	return objects[O](items)
}

func all[O any](store toolscache.Indexer) []*O { return objects[O](store.List()) }

func objects[O any](items []any) []*O {
	found := make([]*O, 0, len(items))
	for _, item := range items {
		if object, ok := item.(*O); ok {
			found = append(found, object)
		}
	}
	return found
}
