package trustbundle

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/introspect"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Controller keeps the bundle. It needs no gate: creating a bundle that exists does no harm, and updates and deletes
// carry its resource version.
type Controller struct {
	writer    *write.Writer
	published client.Reader // the bundles of the signer
	rootCA    string
}

// Reconcile makes one pass. Every request leads to the same pass.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	in, err := c.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, c.apply(ctx, Decide(in))
}

func (c *Controller) observe(ctx context.Context) (Input, error) {
	list := &certificatesv1.ClusterTrustBundleList{}
	if err := c.published.List(ctx, list); err != nil {
		return Input{}, fmt.Errorf("reading the ClusterTrustBundles: %w", err)
	}
	return Input{Bundles: list.Items, RootCA: c.rootCA}, nil
}

// apply carries out the plan. A conflict with another writer is no failure: it triggers another pass.
func (c *Controller) apply(ctx context.Context, plan Plan) error {
	if plan.Create != nil {
		return tolerate("creating", plan.Create, c.writer.Create(ctx, "", plan.Create))
	}
	if plan.Update != nil {
		return tolerate("restoring", plan.Update, c.writer.Update(ctx, plan.Update.UID, plan.Update))
	}
	for _, former := range plan.Delete {
		if err := tolerate("deleting", former, c.writer.Delete(ctx, former.UID, former)); err != nil {
			return err
		}
	}
	return nil
}

func tolerate(doing string, b *bundle, err error) error {
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s the ClusterTrustBundle %s: %w", doing, b.Name, err)
}

// explain answers for the bundles of the signer.
func (c *Controller) explain(ctx context.Context, _, name string) (introspect.Explanation, bool) {
	in, err := c.observe(ctx)
	if err != nil {
		return introspect.Explanation{Summary: "cannot decide: " + err.Error()}, true
	}
	if !slices.ContainsFunc(in.Bundles, func(b bundle) bool { return b.Name == name }) {
		return introspect.Explanation{}, false
	}
	return account(in, Decide(in), name).Explanation(), true
}
