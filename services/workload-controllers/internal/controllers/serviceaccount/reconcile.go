package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Controller keeps the ServiceAccount in every namespace. It needs no gate: creating one that exists does no harm.
type Controller struct {
	client client.Client
}

// steps are what a pass over a namespace consists of.
func (c *Controller) steps() *pass.Steps[*corev1.Namespace, Input, *corev1.ServiceAccount] {
	return &pass.Steps[*corev1.Namespace, Input, *corev1.ServiceAccount]{
		Reader: c.client, New: func() *corev1.Namespace { return &corev1.Namespace{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
	}
}

func (c *Controller) observe(ctx context.Context, namespace *corev1.Namespace) (Input, bool, error) {
	err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: name}, &corev1.ServiceAccount{})
	if client.IgnoreNotFound(err) != nil {
		return Input{}, false, fmt.Errorf("reading the ServiceAccount: %w", err)
	}
	return Input{Namespace: namespace, Exists: err == nil}, true, nil
}

func (c *Controller) apply(ctx context.Context, in Input, account *corev1.ServiceAccount) error {
	if account == nil {
		return nil
	}
	writer := write.Writer{Client: c.client, Kind: "serviceaccount"}
	err := writer.Create(ctx, in.Namespace.UID, account)
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.HasStatusCause(err,
		corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("creating ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	return nil
}
