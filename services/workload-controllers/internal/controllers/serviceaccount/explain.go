package serviceaccount

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/introspect"
)

// explainAccount explains what happens to a ServiceAccount.
func (c *Controller) explainAccount(ctx context.Context, namespace, account string) (introspect.Explanation, bool) {
	found := &corev1.ServiceAccount{}
	switch err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: account}, found); {
	case apierrors.IsNotFound(err):
		return introspect.Explanation{}, false
	case err != nil:
		return introspect.Explanation{Summary: "cannot read it: " + err.Error()}, true
	}
	return standing(found).Explanation(), true
}
