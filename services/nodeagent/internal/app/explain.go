package app

import (
	"context"
	"fmt"
	"slices"

	"keelson.dev/kit/introspect"
)

// explain says what the node does about a Pod.
func (a *agent) explain(_ context.Context, namespace, name string) (introspect.Explanation, bool) {
	view, ok := a.pool.View(namespace, name)
	if !ok {
		return introspect.Explanation{}, false
	}
	out := introspect.Explanation{Summary: fmt.Sprintf("node %s: goal %s", a.NodeName, view.Plan.Goal)}
	switch {
	case view.Removed:
		out.Summary += "; the API has no such Pod any more, it is being ended"
	case view.Plan.Outcome != nil:
		out.Summary += "; the Pod failed as a whole: " + view.Plan.Outcome.Message
	case len(view.Ops) > 0:
		out.Summary += fmt.Sprintf("; under way: %s", view.Ops)
	case len(view.Plan.Waiting) == 0 && len(view.Faults) == 0:
		out.Summary += "; nothing to do"
	}
	for container, w := range view.Plan.Waiting {
		out.Facts = append(out.Facts, introspect.Fact{Time: view.At, Reason: w.Reason, Message: "container " +
			container + ": " + w.Message})
	}
	for operation, f := range view.Faults {
		out.Facts = append(out.Facts, introspect.Fact{Time: f.At, Reason: f.Reason,
			Message: fmt.Sprintf("%s failed %d times: %s", operation, f.Count, f.Message)})
	}
	slices.SortFunc(out.Facts, func(a, b introspect.Fact) int { return a.Time.Compare(b.Time) })
	return out, true
}
