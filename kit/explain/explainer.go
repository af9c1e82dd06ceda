package explain

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/introspect"
	"keelson.dev/kit/pass"
)

// Explainer returns what answers for the objects of a controller: it observes and decides as a pass would, and applies
// nothing. Say puts a decision into words; leaves says why the controller has nothing to decide about an object, and is
// nil where there is always something, unless the object is being deleted.
func Explainer[O client.Object, In, Plan any](steps *pass.Steps[O, In, Plan], say func(In, Plan) Account,
	leaves func(O) string) introspect.Explainer {
	return func(ctx context.Context, namespace, name string) (introspect.Explanation, bool) {
		object := steps.New()
		switch err := steps.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); {
		case apierrors.IsNotFound(err):
			return introspect.Explanation{}, false
		case err != nil:
			return introspect.Explanation{Summary: "cannot read it: " + err.Error()}, true
		}
		if steps.Gate != nil && !steps.Gate.IsOpen(object.GetUID()) {
			return Account{Waits: []Wait{{Reason: "OwnWrite", For: "its cache to show what it has just written",
				Ends: "the apiserver's watch tells of it"}}}.Explanation(), true
		}
		in, needed, err := steps.Observe(ctx, object)
		switch {
		case err != nil:
			return introspect.Explanation{Summary: "cannot decide: " + err.Error()}, true
		case !needed && leaves == nil:
			return introspect.Explanation{Summary: "has nothing to decide: it is being deleted"}, true
		case !needed:
			return introspect.Explanation{Summary: leaves(object)}, true
		}
		return say(in, steps.Decide(in)).Explanation(), true
	}
}
