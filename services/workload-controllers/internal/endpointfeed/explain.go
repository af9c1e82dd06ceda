package endpointfeed

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"

	"keelson.dev/kit/introspect"
	"keelson.dev/services/workload-controllers/internal/storeindex"
)

// Explainer explains EndpointSlices: one that the manager keeps for an object of the kind by what explain returns about
// that object, others by what leaves returns. If leaves returns "", it knows nothing about the slice.
func (s Slices) Explainer(kind string, explain introspect.Explainer, leaves func(*discoveryv1.EndpointSlice) string,
) introspect.Explainer {
	return func(ctx context.Context, namespace, name string) (introspect.Explanation, bool) {
		slice := storeindex.Get[discoveryv1.EndpointSlice](s.store, storeindex.Key(namespace, name))
		if slice == nil {
			return introspect.Explanation{}, false
		}
		of := slice.Labels[discoveryv1.LabelServiceName]
		if slice.Labels[discoveryv1.LabelManagedBy] != s.manager || of == "" {
			said := leaves(slice)
			return introspect.Explanation{Summary: said}, said != ""
		}
		said, known := explain(ctx, namespace, of)
		if !known {
			return ownerless(slice, kind+" "+of).Explanation(), true
		}
		said.Summary = listed(slice) + "; of " + kind + " " + of + ": " + said.Summary
		return said, true
	}
}
