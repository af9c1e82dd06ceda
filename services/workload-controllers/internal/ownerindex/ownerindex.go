// Package ownerindex finds cached ReplicaSets by the object that controls them.
package ownerindex

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// field is the name of the index; its values are the UIDs of controllers, or nobody.
const (
	field  = "metadata.controller"
	nobody = "none"
)

// Index is the index of one cache.
type Index struct {
	once sync.Once
	err  error
}

// Register adds the index to the cache, before the cache starts. Every controller that needs it may call this.
func (x *Index) Register(ctx context.Context, indexer client.FieldIndexer) error {
	x.once.Do(func() {
		x.err = indexer.IndexField(ctx, &appsv1.ReplicaSet{}, field, func(object client.Object) []string {
			return []string{controller(object)}
		})
	})
	return x.err
}

// Owned returns the ReplicaSets of a namespace that the owner controls. They are shared with the cache: read only.
func Owned(ctx context.Context, reader client.Reader, namespace string, owner types.UID) ([]*appsv1.ReplicaSet, error) {
	return list(ctx, reader, namespace, string(owner))
}

// Unowned returns the ReplicaSets of a namespace that nobody controls. They are shared with the cache: read only.
func Unowned(ctx context.Context, reader client.Reader, namespace string) ([]*appsv1.ReplicaSet, error) {
	return list(ctx, reader, namespace, nobody)
}

// Siblings returns the UIDs of the ReplicaSets that have the same controller as this one, its own included. One without a
// controller has no siblings.
func Siblings(ctx context.Context, reader client.Reader, set *appsv1.ReplicaSet) ([]types.UID, error) {
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil {
		return []types.UID{set.UID}, nil
	}
	sets, err := Owned(ctx, reader, set.Namespace, owner.UID)
	if err != nil {
		return nil, err
	}
	uids := make([]types.UID, len(sets))
	for i := range sets {
		uids[i] = sets[i].UID
	}
	return uids, nil
}

func list(ctx context.Context, reader client.Reader, namespace, value string) ([]*appsv1.ReplicaSet, error) {
	found := &appsv1.ReplicaSetList{}
	if err := reader.List(ctx, found, client.InNamespace(namespace), client.MatchingFields{field: value}); err != nil {
		return nil, fmt.Errorf("listing ReplicaSets by controller: %w", err)
	}
	sets := make([]*appsv1.ReplicaSet, len(found.Items))
	for i := range found.Items {
		sets[i] = &found.Items[i]
	}
	return sets, nil
}

func controller(object metav1.Object) string {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return string(owner.UID)
	}
	return nobody
}
