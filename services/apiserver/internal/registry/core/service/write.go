package service

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/util/dryrun"

	"keelson.dev/services/apiserver/internal/alloc"
	"keelson.dev/services/apiserver/internal/clusterip"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// releaseTimeout bounds how long giving back may take; what is not given back then, an audit finds.
const releaseTimeout = 10 * time.Second

// nameTries is how often a name is made up, as for other kinds.
const nameTries = 8

// storage is the Service's storage: a write is validated and takes what the Service needs first, and gives back
// afterwards what the stored Service does not use.
type storage struct {
	*rest.Storage
	ranges      *ranges
	audits      *audits
	allocations *alloc.Store
}

// Create stores a new Service. Its addresses are recorded by its name, so a generated name is generated first, and
// again if another Service has it.
func (s *storage) Create(ctx context.Context, obj runtime.Object, validate genericrest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	service := obj.(*corev1.Service)
	if service.Name != "" || service.GenerateName == "" {
		return s.createNamed(ctx, service, validate, options)
	}
	for try := 1; ; try++ {
		named := service.DeepCopy()
		named.Name = names.SimpleNameGenerator.GenerateName(named.GenerateName)
		created, err := s.createNamed(ctx, named, validate, options)
		if try == nameTries || !apierrors.IsAlreadyExists(err) {
			return created, err
		}
	}
}

func (s *storage) createNamed(ctx context.Context, service *corev1.Service, validate genericrest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	r, err := s.reserve(ctx, options.DryRun)
	if err != nil {
		return nil, err
	}
	writing, refusals := rest.WithRefusals(ctx)
	*refusals = r.complete(ctx, service, nil)
	created, err := s.Storage.Create(writing, service, validate, options)
	if err == nil || refused(err) {
		s.settle(ctx, r, created, nil)
	}
	return created, err
}

// Update changes a Service.
func (s *storage) Update(ctx context.Context, name string, info genericrest.UpdatedObjectInfo,
	createValidation genericrest.ValidateObjectFunc, updateValidation genericrest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	r, err := s.reserve(ctx, options.DryRun)
	if err != nil {
		return nil, false, err
	}
	writing, refusals := rest.WithRefusals(ctx)
	var old *corev1.Service
	completed := genericrest.WrapUpdatedObjectInfo(info, func(ctx context.Context, updated,
		existing runtime.Object) (runtime.Object, error) {
		old = nil
		if was, ok := existing.(*corev1.Service); ok && was.UID != "" {
			old = was.DeepCopy()
		}
		service := updated.(*corev1.Service)
		*refusals = r.complete(ctx, service, old)
		return service, nil
	})
	updated, created, err := s.Storage.Update(writing, name, completed, createValidation, updateValidation,
		forceAllowCreate, options)
	if err == nil || refused(err) {
		s.settle(ctx, r, updated, old)
	}
	return updated, created, err
}

func (s *storage) reserve(ctx context.Context, dryRun []string) (*reservation, error) {
	if err := s.audits.ensure(ctx); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &reservation{ranges: s.ranges, dryRun: dryrun.IsDryRun(dryRun)}, nil
}

// settle gives back what is not used after the write; stored is nil if it failed.
func (s *storage) settle(ctx context.Context, r *reservation, stored runtime.Object, old *corev1.Service) {
	ctx, cancel := detached(ctx)
	defer cancel()
	service, ok := stored.(*corev1.Service)
	if !ok {
		service = nil
	}
	if err := r.release(ctx, service, old); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Giving back what a Service does not use; an audit will")
	}
}

// refused reports whether err proves that nothing was written. After any other error the write may count all the same:
// the addresses and ports that it took must not be given to another Service, and if they are unused, an audit finds
// them.
func refused(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonInvalid, metav1.StatusReasonForbidden, metav1.StatusReasonConflict,
		metav1.StatusReasonNotFound,
		metav1.StatusReasonAlreadyExists, metav1.StatusReasonBadRequest:
		return true
	}
	return false
}

// afterDelete gives back what a deleted Service had.
func (r *ranges) afterDelete(obj runtime.Object, options *metav1.DeleteOptions) {
	service, ok := obj.(*corev1.Service)
	if !ok || options != nil && dryrun.IsDryRun(options.DryRun) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := held(service).release(ctx, r, clusterip.OwnerOf(service)); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Giving back what a deleted Service had; an audit will")
	}
}
