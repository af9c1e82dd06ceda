package endpointfeed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Plan names every EndpointSlice that a pass writes. It may share memory with what the decision has read.
type Plan struct {
	Create, Update, Delete []*discoveryv1.EndpointSlice
}

// Write carries out the plan on behalf of an owner: an endpoint is in a slice before it leaves another. Nothing new
// is made in a namespace that is on its way out.
func (p Plan) Write(ctx context.Context, w *write.Writer, owner types.UID) error {
	err := p.write(ctx, w, owner)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsNotFound(err):
		return pass.ErrStale
	}
	return err
}

func (p Plan) write(ctx context.Context, w *write.Writer, owner types.UID) error {
	// The server's answer is decoded into what is sent, and the plan shares what is in the cache.
	for _, slice := range p.Create {
		if err := w.Create(ctx, owner, slice.DeepCopy()); err != nil {
			return fmt.Errorf("creating an EndpointSlice: %w", err)
		}
	}
	for _, slice := range p.Update {
		if err := w.Update(ctx, owner, slice.DeepCopy()); err != nil {
			return fmt.Errorf("updating EndpointSlice %s: %w", slice.Name, err)
		}
	}
	for _, slice := range p.Delete {
		if err := w.Delete(ctx, owner, slice); err != nil {
			return fmt.Errorf("deleting EndpointSlice %s: %w", slice.Name, err)
		}
	}
	return nil
}
