package controller

import (
	"context"
	"maps"
	"strings"

	"keelson.dev/kit/introspect"
)

// explains says which controllers explain which kind.
type explains struct{ controller, kind string }

// Explain answers for objects of the first kind that the controller's Registration names, as long as the controller
// leads.
func (s *Setup) Explain(e introspect.Explainer) { s.ExplainKind(s.explains[0], e) }

// ExplainKind is Explain for another kind of them.
func (s *Setup) ExplainKind(kind string, e introspect.Explainer) { s.explain(kind, e) }

// addExplainers has introspection ask every controller that explains a kind.
func (g *Group) addExplainers() {
	kinds := map[string][]string{}
	for _, r := range g.options.Controllers {
		for _, kind := range r.Explains {
			kinds[kind] = append(kinds[kind], r.Name)
		}
	}
	for kind, names := range kinds {
		explain := g.explainer(explains{names[0], kind})
		if len(names) > 1 {
			explain = g.severalExplain(kind, names)
		}
		g.options.State.AddExplainer(kind, explain)
	}
}

// severalExplain has each of the controllers explain what it does, with its name before it.
func (g *Group) severalExplain(kind string, names []string) introspect.Explainer {
	return func(ctx context.Context, namespace, object string) (all introspect.Explanation, known bool) {
		var said []string
		for _, name := range names {
			e, knows := g.explainer(explains{name, kind})(ctx, namespace, object)
			if !knows {
				continue
			}
			known = true
			said = append(said, name+" "+e.Summary)
			all.Facts = append(all.Facts, e.Facts...)
		}
		all.Summary = strings.Join(said, "; ")
		return all, known
	}
}

// explainer answers for a controller: by what it knows while it leads here, and else by the leader.
func (g *Group) explainer(who explains) introspect.Explainer {
	role := g.options.Service + "." + who.controller
	return func(ctx context.Context, namespace, object string) (introspect.Explanation, bool) {
		g.mu.Lock()
		explain := g.explainers[who]
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

// setExplainer remembers how a controller that leads explains a kind.
func (g *Group) setExplainer(who explains, e introspect.Explainer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.explainers[who] = e
}

// dropExplainers forgets how a controller explains that leads no longer.
func (g *Group) dropExplainers(controller string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.explainers, func(who explains, _ introspect.Explainer) bool {
		return who.controller == controller
	})
}
