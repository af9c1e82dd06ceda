// Package storeindex finds objects in the caches that all controllers of a process share. What it returns is shared:
// read only.
package storeindex

import (
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
)

// adding keeps two terms of one process from adding an index at once.
var adding sync.Mutex

// Add indexes a store's objects of type O by the values that each has, unless it has an index of the name already.
func Add[O any](store toolscache.Indexer, name string, values func(O) []string) error {
	adding.Lock()
	defer adding.Unlock()
	if _, ok := store.GetIndexers()[name]; ok {
		return nil
	}
	err := store.AddIndexers(toolscache.Indexers{name: func(item any) ([]string, error) {
		object, ok := item.(O)
		if !ok {
			return nil, fmt.Errorf("indexing a %T", item)
		}
		return values(object), nil
	}})
	if err != nil {
		return fmt.Errorf("indexing by %s: %w", name, err)
	}
	return nil
}

// Key is the key of an object; those of the cluster have no namespace.
func Key(namespace, name string) string {
	return toolscache.ObjectName{Namespace: namespace, Name: name}.String()
}

// Get returns the object, or nil.
func Get[O any](store toolscache.Store, key string) *O {
	// A store in memory does not fail.
	item, _, _ := store.GetByKey(key)
	object, _ := item.(*O)
	return object
}

// Find returns the objects that have the value in the index.
func Find[O any](store toolscache.Indexer, index, value string) []*O {
	// The only error is that the index does not exist.
	items, _ := store.ByIndex(index, value)
	return objects[O](items)
}

// All returns all objects.
func All[O any](store toolscache.Store) []*O { return objects[O](store.List()) }

func objects[O any](items []any) []*O {
	found := make([]*O, 0, len(items))
	for _, item := range items {
		if object, ok := item.(*O); ok {
			found = append(found, object)
		}
	}
	return found
}
