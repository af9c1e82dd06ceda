package endpointslicemirroring

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/endpointfeed"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Controller mirrors Endpoints into EndpointSlices.
type Controller struct {
	client       client.Client // reads from the cache
	writer       *write.Writer
	gate         *gate.Gate
	slices       endpointfeed.Slices
	maxEndpoints int32
}

// steps are what a pass over Endpoints consists of.
func (c *Controller) steps() *pass.Steps[*corev1.Endpoints, Input, endpointfeed.Plan] {
	return &pass.Steps[*corev1.Endpoints, Input, endpointfeed.Plan]{
		Reader: c.client, New: func() *corev1.Endpoints { return &corev1.Endpoints{} }, Gate: c.gate,
		Observe: c.observe, Decide: Decide, Apply: c.apply,
	}
}

// observe reads the input of a decision. All of it is shared with the cache.
func (c *Controller) observe(ctx context.Context, endpoints *corev1.Endpoints) (Input, bool, error) {
	in := Input{Endpoints: endpoints, MaxEndpoints: c.maxEndpoints,
		Slices: c.slices.Of(endpoints.Namespace, endpoints.Name)}
	service := &corev1.Service{}
	switch err := c.client.Get(ctx, client.ObjectKeyFromObject(endpoints), service); {
	case err == nil:
		in.Service = service
	case !apierrors.IsNotFound(err):
		return in, false, fmt.Errorf("reading Service %s/%s: %w", endpoints.Namespace, endpoints.Name, err)
	}
	return in, true, nil
}

// apply carries out the plan.
func (c *Controller) apply(ctx context.Context, in Input, plan endpointfeed.Plan) error {
	return plan.Write(ctx, c.writer, in.Endpoints.UID)
}
