package rest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/carriedfields"
	"keelson.dev/services/apiserver/internal/stack"
)

// Create stores a new object.
func (s *Storage) Create(ctx context.Context, obj runtime.Object, validate genericrest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	carriedfields.PutBack(ctx, obj)
	return s.Store.Create(ctx, obj, validate, options)
}

// Update changes the object called name, or creates it where the resource and forceAllowCreate allow that.
func (s *Storage) Update(ctx context.Context, name string, objInfo genericrest.UpdatedObjectInfo,
	createValidation genericrest.ValidateObjectFunc, updateValidation genericrest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	stack.Grow()
	return s.Store.Update(ctx, name, applied{objInfo}, createValidation, updateValidation, forceAllowCreate, options)
}

// applied gives what server-side apply makes of an object the kind that the stored one has. The library leaves it out,
// takes that for a change, and writes the time of an apply which changes nothing.
type applied struct{ genericrest.UpdatedObjectInfo }

// UpdatedObject implements UpdatedObjectInfo.
func (a applied) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	ctx = carriedfields.Offer(ctx, old)
	next, err := a.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil || next == nil {
		return next, err
	}
	carriedfields.PutBack(ctx, next)
	was := old.GetObjectKind().GroupVersionKind()
	if was.Empty() || !next.GetObjectKind().GroupVersionKind().Empty() {
		return next, nil
	}
	next.GetObjectKind().SetGroupVersionKind(was)
	return fieldmanager.IgnoreManagedFieldsTimestampsTransformer(ctx, next, old)
}
