package rest

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"keelson.dev/services/apiserver/internal/resource"
)

// Scale is the /scale subresource of a resource with replicas.
type Scale[O resource.Object] struct {
	store      *genericregistry.Store
	replicated resource.Replicated[O]
	managed    managedReplicas
}

// managedReplicas says where the versions of the parent keep the field that /scale writes.
type managedReplicas struct {
	version schema.GroupVersion
	paths   managedfields.ResourcePathMappings
}

var (
	_ genericrest.Getter                   = &Scale[resource.Object]{}
	_ genericrest.Patcher                  = &Scale[resource.Object]{}
	_ genericrest.GroupVersionKindProvider = &Scale[resource.Object]{}
	_ genericrest.TableConvertor           = &Scale[resource.Object]{}
)

func newScale[O resource.Object](s *Storage, r resource.Replicated[O]) *Scale[O] {
	managed := managedReplicas{version: s.scope.versions[0], paths: managedfields.ResourcePathMappings{}}
	for _, version := range s.scope.versions {
		managed.paths[version.String()] = fieldpath.MakePathOrDie("spec", "replicas")
	}
	return &Scale[O]{s.Store, r, managed}
}

// New returns an empty Scale.
func (s *Scale[O]) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy leaves the store, which belongs to the parent resource, open.
func (s *Scale[O]) Destroy() {}

// GroupVersionKind tells that the object is a Scale, whatever the parent is.
func (s *Scale[O]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// Get returns the Scale of the object called name.
func (s *Scale[O]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return s.replicated.Of(obj.(O))
}

// Update writes spec.replicas of the object called name.
func (s *Scale[O]) Update(ctx context.Context, name string, objInfo genericrest.UpdatedObjectInfo,
	createValidation genericrest.ValidateObjectFunc, updateValidation genericrest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	info := &scaledObject[O]{objInfo, s.replicated, s.managed, updateValidation}
	obj, _, err := s.store.Update(ctx, name, info, createValidation, genericrest.ValidateAllObjectUpdateFunc, false,
		options)
	if err != nil {
		return nil, false, err
	}
	scale, err := s.replicated.Of(obj.(O))
	return scale, false, err
}

// ConvertToTable prints name and age.
func (s *Scale[O]) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return newTableConvertor(resource.Columns[*autoscalingv1.Scale]{}).ConvertToTable(ctx, object, options)
}

// scaledObject turns the update of a Scale into the update of its parent.
type scaledObject[O resource.Object] struct {
	request    genericrest.UpdatedObjectInfo
	replicated resource.Replicated[O]
	managed    managedReplicas
	validate   genericrest.ValidateObjectUpdateFunc
}

// Preconditions are those of the request: a Scale has its parent's UID and resourceVersion.
func (u *scaledObject[O]) Preconditions() *metav1.Preconditions { return u.request.Preconditions() }

// UpdatedObject returns the parent with the replicas that the request asks for.
func (u *scaledObject[O]) UpdatedObject(ctx context.Context, existing runtime.Object) (runtime.Object, error) {
	old := existing.(O)
	parent := existing.DeepCopyObject().(O)
	oldScale, err := u.replicated.Of(old)
	if err != nil {
		return nil, err
	}
	fields := managedfields.NewScaleHandler(parent.GetManagedFields(), u.managed.version, u.managed.paths)
	if oldScale.ManagedFields, err = fields.ToSubresource(); err != nil {
		return nil, fmt.Errorf("mapping managed fields to the scale: %w", err)
	}
	scale, err := u.requested(ctx, oldScale)
	if err != nil {
		return nil, err
	}
	*u.replicated.Desired(parent) = &scale.Spec.Replicas
	parent.SetResourceVersion(scale.ResourceVersion)
	entries, err := fields.ToParent(scale.ManagedFields)
	if err != nil {
		return nil, fmt.Errorf("mapping managed fields of the scale: %w", err)
	}
	parent.SetManagedFields(entries)
	return parent, nil
}

// requested is the Scale that the request turns old into, checked and admitted.
func (u *scaledObject[O]) requested(ctx context.Context, old *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	obj, err := u.request.UpdatedObject(ctx, old.DeepCopy())
	if err != nil {
		return nil, err
	}
	scale, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got %T", obj))
	}
	if errs := resource.ValidateScale(scale, old); len(errs) > 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), old.Name, errs)
	}
	if u.validate != nil {
		if err := u.validate(ctx, scale, old); err != nil {
			return nil, err
		}
	}
	return scale, nil
}
