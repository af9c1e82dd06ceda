// Package claim says which objects a controller may count as its own: those that carry its controller reference, those
// without a controller that its selector matches (to adopt), and those of its own that the selector no longer matches
// (to release).
//
//	decide.go        which of them are kept, adopted, released (pure)
//	decide_patch.go  the patches that do it (pure)
//	confirm.go       what an adoption asks of the server first
//	settle.go        doing it
package claim

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owner is a controller that claims objects.
type Owner struct {
	Namespace, Name string
	UID             types.UID
	Kind            schema.GroupVersionKind
	Selector        labels.Selector
	// Deleting owners adopt and release nothing.
	Deleting bool
}

// Claims sorts the objects that were looked at; what is in none of the lists is not the owner's business.
type Claims[T metav1.Object] struct {
	// Owned carry the reference and match the selector, or belong to an owner that is being deleted.
	Owned []T
	// Adopt match the selector and have no controller.
	Adopt []T
	// Release carry the reference but no longer match.
	Release []T
}

// Settled reports whether nothing has to be adopted or released.
func (c Claims[T]) Settled() bool { return len(c.Adopt)+len(c.Release) == 0 }

// Decide sorts objects of the owner's namespace. The order of the objects is kept.
func Decide[T metav1.Object](owner Owner, objects []T) Claims[T] {
	var claims Claims[T]
	for _, object := range objects {
		switch verdict(owner, object) {
		case keep:
			claims.Owned = append(claims.Owned, object)
		case take:
			claims.Adopt = append(claims.Adopt, object)
		case release:
			claims.Release = append(claims.Release, object)
		case ignore:
		}
	}
	return claims
}

type decision int

const (
	ignore decision = iota
	keep
	take
	release
)

func verdict(owner Owner, object metav1.Object) decision {
	controller := metav1.GetControllerOfNoCopy(object)
	matches := owner.Selector.Matches(labels.Set(object.GetLabels()))
	switch {
	case object.GetNamespace() != owner.Namespace:
		return ignore
	case controller != nil && controller.UID != owner.UID:
		return ignore
	case controller != nil && (matches || owner.Deleting):
		return keep
	case controller != nil:
		return release
	case matches && !owner.Deleting && object.GetDeletionTimestamp() == nil:
		return take
	default:
		return ignore
	}
}

// Reference is the controller reference that makes an object the owner's.
func Reference(owner Owner) metav1.OwnerReference {
	yes := true
	version, kind := owner.Kind.ToAPIVersionAndKind()
	return metav1.OwnerReference{
		APIVersion: version, Kind: kind, Name: owner.Name, UID: owner.UID, Controller: &yes, BlockOwnerDeletion: &yes,
	}
}
