package endpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/endpointslice/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

// Controller keeps the Endpoints of the Services that select Pods.
type Controller struct {
	client   client.Client // reads from the cache
	writer   *write.Writer
	gate     *gate.Gate
	services *endpointfeed.Services
	changes  *util.TriggerTimeTracker
	told     recorder

	mu   sync.Mutex // guards gone
	gone map[types.NamespacedName]bool
}

// Reconcile makes a pass over a Service, or deletes the Endpoints of a deleted one.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	switch err := c.client.Get(ctx, request.NamespacedName, &corev1.Service{}); {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, c.remove(ctx, request.NamespacedName)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading Service %s: %w", request.NamespacedName, err)
	}
	return c.steps().Reconcile(ctx, request)
}

// steps are what a pass over a Service consists of.
func (c *Controller) steps() *pass.Steps[*corev1.Service, Input, Plan] { return c.stepsOf(c.observe) }

func (c *Controller) stepsOf(observe func(context.Context, *corev1.Service) (Input, bool, error),
) *pass.Steps[*corev1.Service, Input, Plan] {
	return &pass.Steps[*corev1.Service, Input, Plan]{
		Reader: c.client, New: func() *corev1.Service { return &corev1.Service{} }, Gate: c.gate,
		Observe: observe, Decide: Decide, Apply: c.apply,
	}
}

// observe is see plus the time of the first change, which is used only once.
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
	in := Input{Service: service, Pods: c.services.Pods(service)}
	endpoints := &corev1.Endpoints{}
	switch err := c.client.Get(ctx, client.ObjectKeyFromObject(service), endpoints); {
	case err == nil:
		in.Endpoints = endpoints
	case !apierrors.IsNotFound(err):
		return in, false, fmt.Errorf("reading Endpoints %s/%s: %w", service.Namespace, service.Name, err)
	}
	return in, true, nil
}

// apply carries out the plan.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	var err error
	switch {
	case plan.Create != nil:
		err = c.writer.Create(ctx, in.Service.UID, plan.Create.DeepCopy())
	case plan.Update != nil:
		err = c.writer.Update(ctx, in.Service.UID, plan.Update.DeepCopy())
	}
	switch {
	case err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err):
		return pass.ErrStale
	case !apierrors.IsConflict(err) && ctx.Err() == nil:
		c.told.Record(in.Service, failed(in.Service, plan, err))
	}
	return fmt.Errorf("writing Endpoints %s/%s: %w", in.Service.Namespace, in.Service.Name, err)
}

// forget drops what is remembered about a deleted Service, and notes that its Endpoints must go too.
func (c *Controller) forget(service *corev1.Service) {
	c.services.Remove(service)
	c.gate.Forget(service.UID)
	c.changes.DeleteService(service.Namespace, service.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone[client.ObjectKeyFromObject(service)] = true
}

// remove deletes the Endpoints of a Service whose deletion this process has seen, whoever made them, and otherwise
// only this controller's own: users may create Endpoints before their Service.
func (c *Controller) remove(ctx context.Context, name types.NamespacedName) error {
	c.mu.Lock()
	gone := c.gone[name]
	c.mu.Unlock()
	endpoints := &corev1.Endpoints{}
	err := c.client.Get(ctx, name, endpoints)
	if err == nil && (gone || Leftover(endpoints)) {
		err = c.writer.Delete(ctx, endpoints.UID, endpoints)
	}
	if client.IgnoreNotFound(err) != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("deleting Endpoints %s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.gone, name)
	return nil
}
