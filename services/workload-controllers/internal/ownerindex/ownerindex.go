// Package ownerindex finds cached ReplicaSets by the object that controls them. What it returns is shared with the cache:
// read only.
package ownerindex

import (
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// name is the name of the index; its values are the UIDs of controllers, or nobody and a namespace.
const (
	name   = "keelson.dev/controller"
	nobody = "none/"
)

// adding keeps two controllers that share a cache from adding the index at once.
var adding sync.Mutex

// Index looks ReplicaSets up.
type Index struct {
	store toolscache.Indexer
}

// Of returns the index of a store of ReplicaSets and adds it where it is missing.
func Of(store toolscache.Indexer) (Index, error) {
	adding.Lock()
	defer adding.Unlock()
	if _, ok := store.GetIndexers()[name]; !ok {
		if err := store.AddIndexers(toolscache.Indexers{name: values}); err != nil {
			return Index{}, fmt.Errorf("indexing ReplicaSets by controller: %w", err)
		}
	}
	return Index{store: store}, nil
}

// Owned returns the ReplicaSets that the owner controls.
func (x Index) Owned(owner types.UID) []*appsv1.ReplicaSet { return x.lookUp(string(owner)) }

// Unowned returns the ReplicaSets of a namespace that nobody controls.
func (x Index) Unowned(namespace string) []*appsv1.ReplicaSet { return x.lookUp(nobody + namespace) }

// Siblings returns the UIDs of the ReplicaSets that have the same controller as this one, its own included. One without a
// controller has no siblings.
func (x Index) Siblings(set *appsv1.ReplicaSet) []types.UID {
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil {
		return []types.UID{set.UID}
	}
	var uids []types.UID
	for _, sibling := range x.Owned(owner.UID) {
		uids = append(uids, sibling.UID)
	}
	return uids
}

func (x Index) lookUp(value string) []*appsv1.ReplicaSet {
	// The only error is that the index does not exist; Of has added it.
	items, _ := x.store.ByIndex(name, value)
	sets := make([]*appsv1.ReplicaSet, 0, len(items))
	for _, item := range items {
		if set, ok := item.(*appsv1.ReplicaSet); ok {
			sets = append(sets, set)
		}
	}
	return sets
}

func values(object any) ([]string, error) {
	set, ok := object.(*appsv1.ReplicaSet)
	if !ok {
		return nil, fmt.Errorf("indexing a %T as ReplicaSet", object)
	}
	if owner := metav1.GetControllerOfNoCopy(set); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return []string{nobody + set.Namespace}, nil
}
