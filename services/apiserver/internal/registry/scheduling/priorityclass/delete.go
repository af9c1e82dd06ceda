package priorityclass

import (
	"context"
	"errors"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// storage keeps the system's own classes from being deleted.
type storage struct{ *rest.Storage }

// Delete removes a class that the system does not need.
func (s *storage) Delete(ctx context.Context, name string, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return s.Storage.Delete(ctx, name, sparingSystem(validate), options)
}

// DeleteCollection removes the classes listed up to the first that the system needs.
func (s *storage) DeleteCollection(ctx context.Context, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions, list *internalversion.ListOptions) (runtime.Object, error) {
	return s.Storage.DeleteCollection(ctx, sparingSystem(validate), options, list)
}

// sparingSystem refuses the system's own classes before anything else may admit their deletion.
func sparingSystem(validate genericrest.ValidateObjectFunc) genericrest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if pc, ok := obj.(*schedulingv1.PriorityClass); ok && isSystem(pc.Name) {
			return apierrors.NewForbidden(schedulingv1.Resource(Resource.Name), pc.Name,
				errors.New("this is a system priority class and cannot be deleted"))
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}
}
