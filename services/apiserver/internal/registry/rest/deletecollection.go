package rest

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/kit/contained"
)

// collectionPage is how many objects of a collection are listed at a time.
const collectionPage = 10_000

// DeleteCollection deletes the objects listed, each as Delete does, and returns them as they were listed. After a
// failure the rest stays.
func (s *Storage) DeleteCollection(ctx context.Context, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions, listOptions *internalversion.ListOptions) (runtime.Object, error) {
	s.deletes.warn(ctx, options)
	list := &internalversion.ListOptions{}
	if listOptions != nil {
		list = listOptions.DeepCopy()
	}
	onePage := list.Limit > 0
	if !onePage {
		list.Limit = collectionPage
	}
	var first runtime.Object
	var all []runtime.Object
	for {
		page, err := s.List(ctx, list)
		if err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(page)
		if err != nil {
			return nil, fmt.Errorf("deleting a collection: %w", err)
		}
		if err := s.deleteAll(ctx, items, validate, options); err != nil {
			return nil, err
		}
		listed, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("deleting a collection: %w", err)
		}
		if first == nil {
			first = page
		}
		if all = append(all, items...); onePage || listed.GetContinue() == "" {
			return first, meta.SetList(first, all)
		}
		list.Continue, list.ResourceVersion, list.ResourceVersionMatch = listed.GetContinue(), "", ""
	}
}

// deleteAll deletes some objects at a time, until one cannot be deleted.
func (s *Storage) deleteAll(ctx context.Context, items []runtime.Object, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions) error {
	var workers contained.Group
	var next atomic.Int64
	errs := make([]error, max(1, min(s.DeleteCollectionWorkers, len(items))))
	for worker := range errs {
		workers.Go("deleting a collection", func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(items) {
					return
				}
				if errs[worker] = s.deleteListed(ctx, items[i], validate, options); errs[worker] != nil {
					next.Store(int64(len(items)))
					return
				}
			}
		}, func(err error) {
			errs[worker] = err
			next.Store(int64(len(items)))
		})
	}
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Storage) deleteListed(ctx context.Context, item runtime.Object, validate genericrest.ValidateObjectFunc,
	options *metav1.DeleteOptions) error {
	m, err := meta.Accessor(item)
	if err != nil {
		return fmt.Errorf("deleting a collection: %w", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, _, err = s.delete(ctx, m.GetName(), validate, options.DeepCopy())
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
