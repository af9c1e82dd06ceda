package rest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/resource"
)

// Ask returns what is wrong with obj, the successor of old, for reasons that the Strategy's rules cannot know, as they
// have no context: who writes it, and what else there is. old is nil for a new object. The client is told of that
// together with what the rules find.
type Ask[O resource.Object] func(ctx context.Context, obj, old O) field.ErrorList

// of returns what an update writes in and by, so that it is asked about. An existing object that is empty stands for
// none: it is an apply's that makes one.
func (ask Ask[O]) of(ctx context.Context, info genericrest.UpdatedObjectInfo) (context.Context,
	genericrest.UpdatedObjectInfo) {
	writing, refusals := WithRefusals(ctx)
	return writing, genericrest.WrapUpdatedObjectInfo(info, func(ctx context.Context, updated,
		existing runtime.Object) (runtime.Object, error) {
		old, _ := existing.(O)
		if existing != nil && old.GetUID() == "" {
			var none O
			old = none
		}
		*refusals = ask(ctx, updated.(O), old)
		return updated, nil
	})
}

// AskOnCreate is a Served's Wrap that asks about each new object.
func AskOnCreate[O resource.Object](ask Ask[O]) func(*Storage) genericrest.Storage {
	return func(s *Storage) genericrest.Storage { return &askingStorage[O]{s, ask} }
}

type askingStorage[O resource.Object] struct {
	*Storage
	ask Ask[O]
}

var _ genericrest.Creater = &askingStorage[resource.Object]{} //nolint:misspell // the library spells it so

// Create stores a new object.
func (s *askingStorage[O]) Create(ctx context.Context, obj runtime.Object, validate genericrest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	var none O
	writing, refusals := WithRefusals(ctx)
	*refusals = s.ask(ctx, obj.(O), none)
	return s.Storage.Create(writing, obj, validate, options)
}

// AskOnWrite is a Served's Wrap that asks about each new object and each update.
func AskOnWrite[O resource.Object](ask Ask[O]) func(*Storage) genericrest.Storage {
	return func(s *Storage) genericrest.Storage { return &askingUpdates[O]{askingStorage[O]{s, ask}} }
}

type askingUpdates[O resource.Object] struct{ askingStorage[O] }

var _ genericrest.CreaterUpdater = &askingUpdates[resource.Object]{}

// Update changes the object called name, or makes it where an apply may.
func (s *askingUpdates[O]) Update(ctx context.Context, name string, info genericrest.UpdatedObjectInfo,
	createValidation genericrest.ValidateObjectFunc, updateValidation genericrest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	writing, asked := s.ask.of(ctx, info)
	return s.Storage.Update(writing, name, asked, createValidation, updateValidation, forceAllowCreate, options)
}

// AskOnStatus makes the storage of a resource's /status that asks about each write.
func AskOnStatus[O resource.Object](ask Ask[O]) func(*Storage) genericrest.Storage {
	return func(s *Storage) genericrest.Storage { return &askingSubresource[O]{s.Status, ask} }
}

type askingSubresource[O resource.Object] struct {
	*Subresource
	ask Ask[O]
}

var _ genericrest.Patcher = &askingSubresource[resource.Object]{}

// Update changes the object called name.
func (s *askingSubresource[O]) Update(ctx context.Context, name string, info genericrest.UpdatedObjectInfo,
	createValidation genericrest.ValidateObjectFunc, updateValidation genericrest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	writing, asked := s.ask.of(ctx, info)
	return s.Subresource.Update(writing, name, asked, createValidation, updateValidation, forceAllowCreate, options)
}
