package rest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"keelson.dev/services/apiserver/internal/stack"
)

// Subresource reads and updates a resource's objects under rules of its own,
// as /status does. It can neither list, create nor delete.
type Subresource struct {
	store *genericregistry.Store
}

var (
	_ genericrest.Getter              = &Subresource{}
	_ genericrest.Updater             = &Subresource{}
	_ genericrest.Patcher             = &Subresource{}
	_ genericrest.TableConvertor      = &Subresource{}
	_ genericrest.ResetFieldsStrategy = &Subresource{}
)

// putOnly is a Subresource of which nothing but an update can be asked.
type putOnly struct {
	genericrest.Storage
	genericrest.Updater
	genericrest.ResetFieldsStrategy
}

// New returns an empty object of the parent resource.
func (p putOnly) New() runtime.Object { return p.Storage.New() }

func (s *Storage) writes(strategy genericrest.UpdateResetFieldsStrategy) *Subresource {
	store := *s.Store
	store.UpdateStrategy = strategy
	store.ResetFieldsStrategy = strategy
	return &Subresource{store: &store}
}

// New returns an empty object of the parent resource.
func (s *Subresource) New() runtime.Object { return s.store.New() }

// Destroy leaves the store, which belongs to the parent resource, open.
func (s *Subresource) Destroy() {}

// Get returns the object called name.
func (s *Subresource) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update changes the object called name. It never creates one.
func (s *Subresource) Update(ctx context.Context, name string, objInfo genericrest.UpdatedObjectInfo,
	createValidation genericrest.ValidateObjectFunc, updateValidation genericrest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	stack.Grow()
	return s.store.Update(ctx, name, applied{objInfo}, createValidation, updateValidation, false, options)
}

// GetResetFields implements the API machinery's ResetFieldsStrategy.
func (s *Subresource) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable prints the object as the parent resource does.
func (s *Subresource) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}
