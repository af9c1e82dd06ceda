package rootca

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Controller keeps the ConfigMap in every namespace. It needs no gate: creating a ConfigMap that exists does no
// harm, and an update carries the resource version.
type Controller struct {
	client    client.Client
	published client.Reader // the ConfigMaps of this controller
	rootCA    string
}

// steps are what a pass over a namespace consists of.
func (c *Controller) steps() *pass.Steps[*corev1.Namespace, Input, Plan] {
	return &pass.Steps[*corev1.Namespace, Input, Plan]{
		Reader: c.client, New: func() *corev1.Namespace { return &corev1.Namespace{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
	}
}

func (c *Controller) observe(ctx context.Context, namespace *corev1.Namespace) (Input, bool, error) {
	in := Input{Namespace: namespace, RootCA: c.rootCA}
	configMap := &corev1.ConfigMap{}
	switch err := c.published.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: name}, configMap); {
	case err == nil:
		in.ConfigMap = configMap
	case !apierrors.IsNotFound(err):
		return Input{}, false, fmt.Errorf("reading the ConfigMap: %w", err)
	}
	return in, true, nil
}

// apply carries out the plan. A conflict with another writer is no failure: it wakes the namespace up again.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	var err error
	writer := write.Writer{Client: c.client, Kind: "configmap"}
	switch {
	case plan.Create != nil:
		err = writer.Create(ctx, in.Namespace.UID, plan.Create)
	case plan.Update != nil:
		err = writer.Update(ctx, in.Namespace.UID, plan.Update)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", in.Namespace.Name, name, err)
	}
	return nil
}
