package owners

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"keelson.dev/kit/failpoint"
)

// releasesAtOnce bounds how many dependents of one object are let go in parallel.
const releasesAtOnce = 10

// writer carries plans out. Every write names the UID and the version that the decision was made on; a conflict means
// that the decision is to be made again.
type writer struct {
	client metadata.Interface
	log    *zap.Logger
}

func (w *writer) apply(ctx context.Context, o *Object, plan Plan) error {
	if err := w.release(ctx, o, plan.Release); err != nil {
		return err
	}
	switch {
	case plan.Delete != nil:
		return w.delete(ctx, o, *plan.Delete)
	case plan.KeepOwners != nil:
		return w.patch(ctx, o, "owners", map[string]any{"ownerReferences": plan.KeepOwners})
	case plan.DropFinalizer != "":
		rest := slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == plan.DropFinalizer })
		return w.patch(ctx, o, "finalizer", map[string]any{"finalizers": rest})
	}
	return nil
}

func (w *writer) release(ctx context.Context, owner *Object, dependents []*Object) error {
	var mu sync.Mutex // guards errs
	var errs []error
	group := errgroup.Group{}
	group.SetLimit(releasesAtOnce)
	for _, d := range dependents {
		group.Go(func() error {
			if err := w.patch(ctx, d, "owners",
				map[string]any{"ownerReferences": without(d.Owners, owner.UID)}); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return joinErrors(errs)
}

// delete begins a graceful deletion; this collector never forces one (SAF-157).
func (w *writer) delete(ctx context.Context, o *Object, policy metav1.DeletionPropagation) error {
	w.log.Debug("deleting", zap.String("kind", o.Kind), zap.String("namespace", o.Namespace),
		zap.String("name", o.Name),
		zap.String("uid", string(o.UID)), zap.String("propagation", string(policy)))
	return failpoint.Around("podgc/dependent.delete", func() error {
		err := w.of(o).Delete(ctx, o.Name, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion},
			PropagationPolicy: &policy,
		})
		if ignoreGone(err) != nil {
			return fmt.Errorf("deleting %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
		}
		return nil
	})
}

// patch merges fields into the object's metadata.
func (w *writer) patch(ctx context.Context, o *Object, what string, fields map[string]any) error {
	fields["uid"], fields["resourceVersion"] = o.UID, o.ResourceVersion
	body, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return fmt.Errorf("encoding the patch of %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return failpoint.Around("podgc/"+what+".patch", func() error {
		_, err := w.of(o).Patch(ctx, o.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: Name})
		if ignoreGone(err) != nil {
			return fmt.Errorf("patching the %s of %s %s/%s: %w", what, o.Kind, o.Namespace, o.Name, err)
		}
		return nil
	})
}

func (w *writer) of(o *Object) metadata.ResourceInterface {
	if o.Namespace == "" {
		return w.client.Resource(o.Resource)
	}
	return w.client.Resource(o.Resource).Namespace(o.Namespace)
}
