package controller

import (
	"context"

	"keelson.dev/kit/introspect"
)

// Explain answers for objects of the kind that the controller's Registration names, as long as the controller leads.
func (s *Setup) Explain(e introspect.Explainer) { s.explain(e) }

// explainer answers for a controller: by what it knows while it leads here, and else by who does.
func (g *Group) explainer(name string) introspect.Explainer {
	role := g.options.Service + "." + name
	return func(ctx context.Context, namespace, object string) (introspect.Explanation, bool) {
		g.mu.Lock()
		explain := g.explainers[name]
		g.mu.Unlock()
		if explain != nil {
			return explain(ctx, namespace, object)
		}
		if holder := g.options.State.Holder(role); holder != "" {
			return introspect.Explanation{Summary: "does not lead " + role + ": " + holder + " does, and can tell"},
				true
		}
		return introspect.Explanation{Summary: "does not lead " + role + ", and does not know who does"}, true
	}
}

// setExplainer remembers how a controller that leads explains; nil forgets it.
func (g *Group) setExplainer(name string, e introspect.Explainer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.explainers[name] = e; e == nil {
		delete(g.explainers, name)
	}
}
