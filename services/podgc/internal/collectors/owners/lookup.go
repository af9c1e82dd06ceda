package owners

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/lru"

	"keelson.dev/services/podgc/internal/resources"
)

// rememberAbsent bounds the memory of owners that are gone. A UID never comes back, so an entry is true for ever.
const rememberAbsent = 10_000

// named is an owner as a dependent names it. That there is none of the UID in one place says nothing of another:
// whoever names somebody else's UID in a place of his own must not make that owner absent.
type named struct {
	kind            schema.GroupKind
	namespace, name string
	uid             types.UID
}

// lookup asks the server for owners that were never observed, so that nothing is deleted on the word of a cache
// alone.
type lookup struct {
	client     metadata.Interface
	resourceOf func(schema.GroupKind) (resources.Resource, bool)
	// misplaced is called with a reference that can never be resolved.
	misplaced func(dependent *Object, ref metav1.OwnerReference)

	absent *lru.Cache
	flight singleflight.Group
}

// telling returns the lookup with another way to report references that can never be resolved.
func (l *lookup) telling(misplaced func(*Object, metav1.OwnerReference)) *lookup {
	return &lookup{client: l.client, resourceOf: l.resourceOf, misplaced: misplaced, absent: l.absent}
}

// find returns what the server says of one owner of the dependent. An error means that it could not be found out.
func (l *lookup) find(ctx context.Context, dependent *Object, ref metav1.OwnerReference) (OwnerState, error) {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return Unknown, fmt.Errorf("owner %s %s of %s %s: %w", ref.Kind, ref.Name, dependent.Kind, dependent.Name, err)
	}
	kind := version.WithKind(ref.Kind).GroupKind()
	resource, served := l.resourceOf(kind)
	if !served {
		if l.wentBefore(kind, dependent, ref) {
			return Absent, nil
		}
		return Unknown, fmt.Errorf("owner %s of %s %s/%s: kind %s of %s is not served", ref.Name,
			dependent.Kind, dependent.Namespace, dependent.Name, ref.Kind, ref.APIVersion)
	}
	if resource.Namespaced && dependent.Namespace == "" {
		// A cluster-scoped object cannot name an owner inside a namespace. It is kept: deleting it would be a guess.
		l.misplaced(dependent, ref)
		return Present, nil
	}
	namespace := ""
	if resource.Namespaced {
		namespace = dependent.Namespace
	}
	owner := named{kind, namespace, ref.Name, ref.UID}
	if _, known := l.absent.Get(owner); known {
		return Absent, nil
	}
	// Many dependents of one owner ask at once.
	state, err, _ := l.flight.Do(fmt.Sprint(owner), func() (any, error) { return l.get(ctx, resource, owner) })
	if err != nil {
		return Unknown, err
	}
	return state.(OwnerState), nil
}

// saw notes that an object has gone that was observed. Where its definition goes after it, nobody can ask for it any
// more, and what it owned must not stay for that.
func (l *lookup) saw(gone *Object) {
	l.absent.Add(named{schema.GroupKind{Group: gone.Resource.Group, Kind: gone.Kind}, gone.Namespace, gone.Name,
		gone.UID}, struct{}{})
}

// wentBefore reports whether an owner of a kind that is not served has been seen to go. That the kind is not served
// says nothing: its objects may still be stored.
func (l *lookup) wentBefore(kind schema.GroupKind, dependent *Object, ref metav1.OwnerReference) bool {
	_, beside := l.absent.Get(named{kind, dependent.Namespace, ref.Name, ref.UID})
	_, above := l.absent.Get(named{kind, "", ref.Name, ref.UID})
	return beside || above
}

func (l *lookup) get(ctx context.Context, resource resources.Resource, of named) (OwnerState, error) {
	var getter metadata.ResourceInterface = l.client.Resource(resource.GroupVersionResource)
	if of.namespace != "" {
		getter = l.client.Resource(resource.GroupVersionResource).Namespace(of.namespace)
	}
	owner, err := getter.Get(ctx, of.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && owner.UID != of.uid:
		l.absent.Add(of, struct{}{})
		return Absent, nil
	case err != nil:
		return Unknown, fmt.Errorf("looking for owner %s %s: %w", of.kind.Kind, of.name, err)
	default:
		return stateOf(owner.DeletionTimestamp != nil && slices.Contains(owner.Finalizers,
			metav1.FinalizerDeleteDependents)), nil
	}
}
