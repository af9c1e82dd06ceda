package rootca

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/failpoint"
)

// Controller keeps the ConfigMap in every namespace. It needs no gate: creating what exists is no harm, and an update
// carries the resource version.
type Controller struct {
	client    client.Client
	published client.Reader // the ConfigMaps of this controller
	rootCA    string
}

// Reconcile makes one pass over a namespace.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	in := Input{Namespace: &corev1.Namespace{}, RootCA: c.rootCA}
	if err := c.client.Get(ctx, request.NamespacedName, in.Namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	configMap := &corev1.ConfigMap{}
	switch err := c.published.Get(ctx, client.ObjectKey{Namespace: in.Namespace.Name, Name: name}, configMap); {
	case err == nil:
		in.ConfigMap = configMap
	case !apierrors.IsNotFound(err):
		return reconcile.Result{}, fmt.Errorf("reading the ConfigMap: %w", err)
	}
	return reconcile.Result{}, c.apply(ctx, Decide(in))
}

func (c *Controller) apply(ctx context.Context, plan Plan) error {
	switch {
	case plan.Create != nil:
		return write(plan.Create, "create", func() error { return c.client.Create(ctx, plan.Create) })
	case plan.Update != nil:
		return write(plan.Update, "update", func() error { return c.client.Update(ctx, plan.Update) })
	default:
		return nil
	}
}

// write carries out one request between its failpoints. Someone else's newer state is no failure: it wakes the namespace up
// again.
func write(configMap *corev1.ConfigMap, verb string, request func() error) error {
	return failpoint.Around("workload-controllers/configmap."+verb, func() error {
		err := request()
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) &&
			!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return fmt.Errorf("writing ConfigMap %s/%s (%s): %w", configMap.Namespace, configMap.Name, verb, err)
		}
		return nil
	})
}
