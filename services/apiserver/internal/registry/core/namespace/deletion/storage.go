// Package deletion serves the Namespace, whose deletion is its own: the first delete marks it, and it goes with the
// last of its finalizers of either kind.
package deletion

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	genericstorage "k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"

	"keelson.dev/services/apiserver/internal/registry/core/namespace"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// storage is the Namespace's storage. It forwards what namespaces can do, which deleting a collection is not.
type storage struct {
	genericrest.Getter
	genericrest.Lister
	genericrest.CreaterUpdater
	genericrest.Watcher
	genericrest.ResetFieldsStrategy
	genericrest.ShortNamesProvider
	genericrest.SingularNameProvider
	store *rest.Storage
}

var (
	_ genericrest.GracefulDeleter = &storage{}
	_ genericrest.Scoper          = &storage{}
)

// Namespace is the Namespace with its own way to be deleted.
func Namespace() rest.Entry {
	r := rest.Serve(namespace.Resource)
	r.Wrap = func(s *rest.Storage) genericrest.Storage { return newStorage(s) }
	r.Customize = func(store *genericregistry.Store) { store.ShouldDeleteDuringUpdate = shouldDeleteDuringUpdate }
	return r
}

func newStorage(s *rest.Storage) *storage {
	return &storage{
		Getter: s, Lister: s, CreaterUpdater: s, Watcher: s,
		ResetFieldsStrategy: s, ShortNamesProvider: s, SingularNameProvider: s,
		store: s,
	}
}

// New returns an empty Namespace.
func (s *storage) New() runtime.Object { return s.store.New() }

// Destroy closes the store.
func (s *storage) Destroy() { s.store.Destroy() }

// NamespaceScoped is false: a namespace is in none.
func (s *storage) NamespaceScoped() bool { return false }

// Delete marks the namespace as terminating. Repeated after the last finalizer is gone, it removes the namespace.
func (s *storage) Delete(ctx context.Context, name string, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, err := s.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	ns := obj.(*corev1.Namespace)
	options = preconditioned(options, ns)
	if *options.Preconditions.UID != ns.UID {
		return nil, false, conflict(name, "UID", string(*options.Preconditions.UID), string(ns.UID))
	}
	if version := options.Preconditions.ResourceVersion; version != nil && *version != ns.ResourceVersion {
		return nil, false, conflict(name, "ResourceVersion", *version, ns.ResourceVersion)
	}
	if ns.DeletionTimestamp.IsZero() {
		return s.terminate(ctx, name, validate, options)
	}
	if len(ns.Spec.Finalizers) > 0 {
		return ns, false, nil
	}
	return s.store.Delete(ctx, name, genericrest.ValidateAllObjectFunc, options)
}

func (s *storage) terminate(ctx context.Context, name string, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	key, err := s.store.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	preconditions := genericstorage.Preconditions{UID: options.Preconditions.UID,
		ResourceVersion: options.Preconditions.ResourceVersion}
	now := metav1.Now()
	mark := genericstorage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
		ns, ok := existing.(*corev1.Namespace)
		if !ok {
			return nil, fmt.Errorf("deleting the namespace %s: the store holds a %T", name, existing)
		}
		if validate != nil {
			if err := validate(ctx, ns); err != nil {
				return nil, err
			}
		}
		namespace.MarkTerminating(ns, options, now)
		return ns, nil
	})
	out := s.store.New()
	err = s.store.Storage.GuaranteedUpdate(ctx, key, out, false, &preconditions, mark, dryrun.IsDryRun(options.DryRun),
		nil)
	if err != nil {
		resource := corev1.Resource("namespaces")
		err = storeerr.InterpretGetError(err, resource, name)
		return nil, false, storeerr.InterpretUpdateError(err, resource, name)
	}
	return out, false, nil
}

// preconditioned returns options that hold for this very namespace, not for a later one of the same name.
func preconditioned(options *metav1.DeleteOptions, ns *corev1.Namespace) *metav1.DeleteOptions {
	if options == nil {
		options = metav1.NewDeleteOptions(0)
	}
	options = options.DeepCopy()
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	if options.Preconditions.UID == nil {
		options.Preconditions.UID = &ns.UID
	}
	return options
}

func conflict(name, what, asked, found string) error {
	//nolint:staticcheck // The text is the API's.
	reason := fmt.Errorf("Precondition failed: %s in precondition: %s, %s in object meta: %s", what, asked, what, found)
	return apierrors.NewConflict(schema.GroupResource{Resource: namespace.Resource.Name}, name, reason)
}

// shouldDeleteDuringUpdate removes a deleted namespace with the update that takes the last finalizer of either kind.
func shouldDeleteDuringUpdate(ctx context.Context, key string, obj, existing runtime.Object) bool {
	ns, ok := obj.(*corev1.Namespace)
	return ok && len(ns.Spec.Finalizers) == 0 && genericregistry.ShouldDeleteDuringUpdate(ctx, key, obj, existing)
}
