package rest

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/stack"
)

// fate is what a delete makes of an object.
type fate int

const (
	// goes: it is removed at once.
	goes fate = iota
	// stays: it is marked, and waits for its grace period or its finalizers.
	stays
	// leaves: an earlier delete has marked it, for no longer than this one asks.
	leaves
)

// errOtherFate ends a write of an object whose fate is another one than when the write was chosen.
var errOtherFate = errors.New("the object changed while it was being deleted")

// deletion is one delete of one object.
type deletion struct {
	*Storage
	name, key     string
	validate      genericrest.ValidateObjectFunc
	options       *metav1.DeleteOptions
	preconditions storage.Preconditions
	// grace is what the request says. Each time, the options get what follows from it for the object at hand.
	grace *int64
	// reason is nil where the object does not tell one, or tells it already.
	reason Reason
	// fate, graceful and judged are of the object as it was last seen; judged has the marks of the delete.
	fate     fate
	graceful bool
	judged   runtime.Object
	// seen is what the first look found. The write starts from it where there is no watch cache.
	seen runtime.Object
}

// Reason says on obj why it is deleted; was is what it was before. They share all that obj's fields refer to.
type Reason func(obj, was runtime.Object)

// Delete removes the object called name with one call of the store, or marks it if it has a grace period or finalizers.
// It starts from what the watch cache has: both writes are of that state only, or judge again.
func (s *Storage) Delete(ctx context.Context, name string, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	s.deletes.warn(ctx, options)
	return s.delete(ctx, name, validate, options)
}

func (s *Storage) delete(ctx context.Context, name string, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	stack.Grow()
	return s.DeleteFor(ctx, nil, name, validate, options)
}

// DeleteFor deletes an object and notes the reason in it: in the write that marks it, or in one before if it goes at
// once or was marked by another client.
func (s *Storage) DeleteFor(ctx context.Context, reason Reason, name string, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	key, err := s.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if options == nil {
		options = metav1.NewDeleteOptions(0)
	}
	d := &deletion{Storage: s, name: name, key: key, validate: s.deletes.before(validate), options: options,
		grace: options.GracePeriodSeconds, reason: reason}
	if p := options.Preconditions; p != nil {
		d.preconditions = storage.Preconditions{UID: p.UID, ResourceVersion: p.ResourceVersion}
	}
	if err := d.look(ctx); err != nil {
		return nil, false, err
	}
	for {
		if d.reason != nil && d.fate != stays {
			if err := d.tell(ctx); err != nil {
				return nil, false, err
			}
		}
		var out runtime.Object
		var err error
		switch d.fate {
		case goes:
			out, err = d.remove(ctx)
		case stays:
			out, err = d.mark(ctx)
		case leaves:
			out, err = d.answer(ctx, d.judged)
		}
		if !errors.Is(err, errOtherFate) {
			return out, err == nil && d.fate == goes, err
		}
		d.seen = nil
	}
}

// look judges the object as the cache has it. Only the store refuses: what the cache lacks may be there, what it has
// may be older than what the request is about.
func (d *deletion) look(ctx context.Context) error {
	obj := d.New()
	if err := d.Store.Storage.Get(ctx, d.key, storage.GetOptions{ResourceVersion: "0"}, obj); err == nil {
		if err := d.judge(ctx, obj); err == nil && d.fate != leaves {
			d.seen = obj
			return nil
		}
	}
	obj = d.New()
	if err := d.Store.Storage.Get(ctx, d.key, storage.GetOptions{}, obj); err != nil {
		return storeerr.InterpretDeleteError(err, d.resource(ctx), d.name)
	}
	d.seen = obj
	return d.judge(ctx, obj)
}

// judge finds the object's fate. It leaves obj alone: the marks of the delete are on judged, which shares the rest.
func (d *deletion) judge(ctx context.Context, obj runtime.Object) error {
	d.judged = shallowCopy(obj)
	d.options.GracePeriodSeconds = d.grace
	graceful, pending, err := genericrest.BeforeDelete(d.DeleteStrategy, ctx, d.judged, d.options)
	if d.graceful = graceful; err != nil {
		return err
	}
	if pending {
		d.fate = leaves
		return nil
	}
	m, err := meta.Accessor(d.judged)
	if err != nil {
		return fmt.Errorf("deleting %s: %w", d.name, err)
	}
	if d.EnableGarbageCollection {
		m.SetFinalizers(deletionFinalizers(m.GetFinalizers(), d.options, d.dependents(ctx)))
	}
	held := len(m.GetFinalizers()) > 0
	if held && !graceful {
		markDeleting(m, metav1.Now())
	}
	d.fate = goes
	if held || (graceful && *d.options.GracePeriodSeconds > 0) {
		d.fate = stays
		if d.reason != nil {
			d.reason(d.judged, obj)
		}
	}
	return nil
}

// tell writes the reason alone. A server that dies after it leaves an object that only says that it was to go; the
// client's next try takes it from there.
func (d *deletion) tell(ctx context.Context) error {
	told := d.New()
	update := storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		out := shallowCopy(obj)
		d.reason(out, obj)
		return out, nil
	})
	if err := d.Store.Storage.GuaranteedUpdate(ctx, d.key, told, false, &d.preconditions, update, false,
		d.seen); err != nil {
		return storeerr.InterpretUpdateError(err, d.resource(ctx), d.name)
	}
	if err := failpoint.Inject("apiserver/delete.reason.after"); err != nil {
		return fmt.Errorf("deleting %s: %w", d.name, err)
	}
	m, err := meta.Accessor(told)
	if err != nil {
		return fmt.Errorf("deleting %s: %w", d.name, err)
	}
	// The delete is of the object as the reason left it: the client's version has been checked here.
	d.preconditions.UID = ptr.To(m.GetUID())
	if d.preconditions.ResourceVersion != nil {
		d.preconditions.ResourceVersion = ptr.To(m.GetResourceVersion())
	}
	d.reason, d.seen = nil, told
	return d.judge(ctx, told)
}

// admit judges an object that is about to be written, and asks whether it may be deleted if its fate is still want.
func (d *deletion) admit(ctx context.Context, obj runtime.Object, want fate) error {
	if err := d.judge(ctx, obj); err != nil {
		return err
	}
	if d.fate != want {
		return errOtherFate
	}
	return d.validate(ctx, obj)
}

func (d *deletion) remove(ctx context.Context) (runtime.Object, error) {
	out := d.New()
	check := func(ctx context.Context, obj runtime.Object) error { return d.admit(ctx, obj, goes) }
	err := d.Store.Storage.Delete(ctx, d.key, out, &d.preconditions, check, dryrun.IsDryRun(d.options.DryRun),
		d.seen, storage.DeleteOptions{})
	if err != nil {
		return nil, storeerr.InterpretDeleteError(err, d.resource(ctx), d.name)
	}
	if d.graceful {
		if err := copyMarks(out, d.judged); err != nil {
			return nil, fmt.Errorf("deleting %s: %w", d.name, err)
		}
	}
	if d.AfterDelete != nil {
		d.AfterDelete(out, d.options)
	}
	return d.answer(ctx, out)
}

func (d *deletion) mark(ctx context.Context) (runtime.Object, error) {
	out := d.New()
	update := storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		err := d.admit(ctx, obj, stays)
		return d.judged, err
	})
	err := d.Store.Storage.GuaranteedUpdate(ctx, d.key, out, false, &d.preconditions, update,
		dryrun.IsDryRun(d.options.DryRun), d.seen)
	if err != nil {
		return nil, storeerr.InterpretUpdateError(err, d.resource(ctx), d.name)
	}
	return out, nil
}

// answer is what the client gets: the object, or a Status that tells which one it was.
func (d *deletion) answer(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	if d.ReturnDeletedObject {
		return obj, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("answering a delete of %s: %w", d.name, err)
	}
	resource := d.resource(ctx)
	return &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		// The API has the resource for the kind here.
		Name: m.GetName(), Group: resource.Group, Kind: resource.Resource, UID: m.GetUID(),
	}}, nil
}

// dependents says what the kind does with its dependents if the request does not say it.
func (s *Storage) dependents(ctx context.Context) genericrest.GarbageCollectionPolicy {
	if strategy, ok := s.DeleteStrategy.(genericrest.GarbageCollectionDeleteStrategy); ok {
		return strategy.DefaultGarbageCollectionPolicy(ctx)
	}
	return ""
}

// resource is what the request calls the resource: some are served in two groups.
func (s *Storage) resource(ctx context.Context) schema.GroupResource {
	if info, ok := genericapirequest.RequestInfoFrom(ctx); ok {
		return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	}
	return s.DefaultQualifiedResource
}

// copyMarks gives to the marks of a delete that from has. They are not stored when the object goes at once.
func copyMarks(to, from runtime.Object) error {
	into, err := meta.Accessor(to)
	if err != nil {
		return err
	}
	marked, err := meta.Accessor(from)
	if err != nil {
		return err
	}
	into.SetDeletionTimestamp(marked.GetDeletionTimestamp())
	into.SetDeletionGracePeriodSeconds(marked.GetDeletionGracePeriodSeconds())
	into.SetGeneration(marked.GetGeneration())
	into.SetFinalizers(marked.GetFinalizers())
	return nil
}

// shallowCopy is another object with the same contents, of which only fields of the object itself may be set.
func shallowCopy(obj runtime.Object) runtime.Object {
	out := reflect.New(reflect.TypeOf(obj).Elem())
	out.Elem().Set(reflect.ValueOf(obj).Elem())
	return out.Interface().(runtime.Object)
}
