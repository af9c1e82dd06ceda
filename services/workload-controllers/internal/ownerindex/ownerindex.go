// Package ownerindex finds cached objects of one kind by the object that controls them. What it returns is shared
// with the cache: read only.
package ownerindex

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/controller"
	"keelson.dev/services/workload-controllers/internal/storeindex"
)

// name is the name of the index; its values are the UIDs of controllers, or nobody and a namespace.
const (
	name   = "keelson.dev/controller"
	nobody = "none/"
)

// Index looks objects up.
type Index[O metav1.Object] struct {
	store toolscache.Indexer
}

// Of returns the index of a store of such objects and adds it where it is missing.
func Of[O metav1.Object](store toolscache.Indexer) (Index[O], error) {
	return Index[O]{store: store}, storeindex.Add(store, name, values[O])
}

// From is Of the cache's objects of a kind, for a controller that is being set up.
func From[O client.Object](s *controller.Setup, kind O) Index[O] {
	index, err := Of[O](s.Store(kind))
	s.Check(err)
	return index
}

// Owned returns the objects that the owner controls.
func (i Index[O]) Owned(owner types.UID) []O { return i.lookUp(string(owner)) }

// Unowned returns the objects of a namespace that have no controller.
func (i Index[O]) Unowned(namespace string) []O { return i.lookUp(nobody + namespace) }

// Siblings returns the UIDs of the objects that have the same controller as this one, its own included. One without a
// controller has no siblings.
func (i Index[O]) Siblings(object O) []types.UID {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil {
		return []types.UID{object.GetUID()}
	}
	var uids []types.UID
	for _, sibling := range i.Owned(owner.UID) {
		uids = append(uids, sibling.GetUID())
	}
	return uids
}

func (i Index[O]) lookUp(value string) []O {
	// The only error is that the index does not exist; Of has added it.
	items, _ := i.store.ByIndex(name, value)
	objects := make([]O, 0, len(items))
	for _, item := range items {
		if object, ok := item.(O); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

func values[O metav1.Object](object O) []string {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{nobody + object.GetNamespace()}
}
