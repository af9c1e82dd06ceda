package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/failpoint"
)

// Controller keeps the ServiceAccount in every namespace. It needs no gate: creating what exists is no harm.
type Controller struct {
	client client.Client
}

// Reconcile makes one pass over a namespace.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{}
	if err := c.client.Get(ctx, request.NamespacedName, namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: name}, &corev1.ServiceAccount{})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading the ServiceAccount: %w", err)
	}
	if account := Decide(Input{Namespace: namespace, Exists: err == nil}); account != nil {
		return reconcile.Result{}, c.create(ctx, account)
	}
	return reconcile.Result{}, nil
}

func (c *Controller) create(ctx context.Context, account *corev1.ServiceAccount) error {
	return failpoint.Around("workload-controllers/serviceaccount.create", func() error {
		err := c.client.Create(ctx, account)
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return fmt.Errorf("creating ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
		}
		return nil
	})
}
