package pods

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/explain"
	"keelson.dev/kit/introspect"
)

// Outlook returns what another collector is about to do with a Pod; if nothing, an empty Account.
type Outlook func(context.Context, *corev1.Pod) explain.Account

// explainer answers for Pods, for this collector and for another.
func (c *collector) explainer(other Outlook) introspect.Explainer {
	return func(ctx context.Context, namespace, name string) (introspect.Explanation, bool) {
		pod := &corev1.Pod{}
		switch err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); {
		case apierrors.IsNotFound(err):
			return introspect.Explanation{}, false
		case err != nil:
			return introspect.Explanation{Summary: "cannot read it: " + err.Error()}, true
		}
		in, err := c.observe(ctx, time.Now())
		if err != nil {
			return introspect.Explanation{Summary: "cannot decide: " + err.Error()}, true
		}
		a, also := account(in, Decide(in), pod), other(ctx, pod)
		a.Does, a.Waits, a.Whole = append(a.Does, also.Does...), append(a.Waits, also.Waits...), true
		return a.Explanation(), true
	}
}
