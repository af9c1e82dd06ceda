package endpointslice

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/endpointslice/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/events"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/endpointfeed"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/write"
)

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller keeps the EndpointSlices of the Services that select Pods.
type Controller struct {
	client       client.Client // reads from the cache
	writer       *write.Writer
	gate         *gate.Gate
	services     *endpointfeed.Services
	slices       endpointfeed.Slices
	changes      *util.TriggerTimeTracker
	maxEndpoints int32
	told         recorder
}

// steps are what a pass over a Service consists of.
func (c *Controller) steps() *pass.Steps[*corev1.Service, Input, endpointfeed.Plan] {
	return c.stepsOf(c.observe)
}

func (c *Controller) stepsOf(observe func(context.Context, *corev1.Service) (Input, bool, error),
) *pass.Steps[*corev1.Service, Input, endpointfeed.Plan] {
	return &pass.Steps[*corev1.Service, Input, endpointfeed.Plan]{
		Reader: c.client, New: func() *corev1.Service { return &corev1.Service{} }, Gate: c.gate,
		Observe: observe, Decide: Decide, Apply: c.apply,
	}
}

// observe is see with the time of the first change, which is told once.
func (c *Controller) observe(ctx context.Context, service *corev1.Service) (Input, bool, error) {
	in, needed, err := c.see(ctx, service)
	if needed && err == nil {
		in.Changed = c.changes.ComputeEndpointLastChangeTriggerTime(service.Namespace, service, in.Pods)
	}
	return in, needed, err
}

// see reads the input of a decision. All of it is shared with the cache.
func (c *Controller) see(ctx context.Context, service *corev1.Service) (Input, bool, error) {
	if !endpointfeed.Selects(service) {
		return Input{}, false, nil
	}
	in := Input{Service: service, Pods: c.services.Pods(service), Nodes: map[string]*corev1.Node{},
		Slices: c.slices.Of(service.Namespace, service.Name), MaxEndpoints: c.maxEndpoints}
	for _, pod := range in.Pods {
		name := pod.Spec.NodeName
		if _, known := in.Nodes[name]; known || name == "" {
			continue
		}
		node := &corev1.Node{}
		switch err := c.client.Get(ctx, client.ObjectKey{Name: name}, node); {
		case apierrors.IsNotFound(err):
			in.Nodes[name] = nil
		case err != nil:
			return in, false, fmt.Errorf("reading Node %s: %w", name, err)
		default:
			in.Nodes[name] = node
		}
	}
	return in, true, nil
}

// apply carries out the plan.
func (c *Controller) apply(ctx context.Context, in Input, plan endpointfeed.Plan) error {
	err := plan.Write(ctx, c.writer, in.Service.UID)
	if err != nil && !apierrors.IsConflict(err) && !errors.Is(err, pass.ErrStale) && ctx.Err() == nil {
		c.told.Record(in.Service, failed(in.Service, err))
	}
	return err
}

// forget drops what is remembered about a Service that is gone.
func (c *Controller) forget(service *corev1.Service) {
	c.services.Remove(service)
	c.gate.Forget(service.UID)
	c.changes.DeleteService(service.Namespace, service.Name)
}
