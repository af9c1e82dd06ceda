package ownerpermissions

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// changes reports whether a write gives an object other owners; old is empty for a new object.
func changes(updated, old []metav1.OwnerReference) bool {
	return (len(updated) > 0 || len(old) > 0) && !equality.Semantic.DeepEqual(updated, old)
}

// blocking are the owners whose deletion a write makes wait for the object.
func blocking(updated, old []metav1.OwnerReference) []metav1.OwnerReference {
	before := sets.New[types.UID]()
	for _, ref := range old {
		if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
			before.Insert(ref.UID)
		}
	}
	var found []metav1.OwnerReference
	for _, ref := range updated {
		if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion && !before.Has(ref.UID) {
			found = append(found, ref)
		}
	}
	return found
}
