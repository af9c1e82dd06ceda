package rest

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/carriedfields"
	"keelson.dev/services/apiserver/internal/resource"
)

// Review is a resource that is never stored: a create is a question, and the
// answer is the object with its status filled in.
type Review[O resource.Object] struct {
	singular   string
	namespaced bool
	newObject  func() O
	answer     func(context.Context, O) error
}

var (
	_ genericrest.Creater              = &Review[resource.Object]{} //nolint:misspell // the library spells it so
	_ genericrest.Scoper               = &Review[resource.Object]{}
	_ genericrest.SingularNameProvider = &Review[resource.Object]{}
)

// NewReview returns a cluster-scoped review; answer fills in the status.
func NewReview[O resource.Object](singular string, newObject func() O,
	answer func(context.Context, O) error) *Review[O] {
	return &Review[O]{singular: singular, newObject: newObject, answer: answer}
}

// NewNamespacedReview returns a review that is asked within a namespace.
func NewNamespacedReview[O resource.Object](singular string, newObject func() O,
	answer func(context.Context, O) error) *Review[O] {
	return &Review[O]{singular: singular, namespaced: true, newObject: newObject, answer: answer}
}

// New returns an empty object.
func (r *Review[O]) New() runtime.Object { return r.newObject() }

// Destroy has nothing to close.
func (r *Review[O]) Destroy() {}

// NamespaceScoped reports whether the review is asked within a namespace.
func (r *Review[O]) NamespaceScoped() bool { return r.namespaced }

// GetSingularName is the resource's name in the singular.
func (r *Review[O]) GetSingularName() string { return r.singular }

// Create answers the question.
func (r *Review[O]) Create(ctx context.Context, object runtime.Object, validate genericrest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	carriedfields.PutBack(ctx, object)
	obj, ok := object.(O)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a %s, got %T", r.singular, object))
	}
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if err := r.answer(ctx, obj); err != nil {
		return nil, err
	}
	return obj, nil
}
