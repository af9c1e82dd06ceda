package nodehealth

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/introspect"
)

// outlook returns the standing of a node and changes nothing: the node takes no place in a line, and no turn.
func (f *fleet) outlook(node *corev1.Node, now time.Time) outlook {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.nodes[node.Name]
	if m == nil {
		return outlook{}
	}
	z := f.zones[m.zone]
	count := census{z.nodes - z.suspect, z.suspect}
	o := outlook{
		Standing: Standing{Silent: f.isSilent(m), Halted: f.halted, Evict: m.evict},
		heard:    f.clock(now) - m.heard, grace: f.grace(m), place: slices.Index(z.line, node.Name) + 1,
		zone: count.state(f.settings.UnhealthyZone),
	}
	o.pause, _ = f.settings.pause(count)
	return o
}

// explain describes what a pass over a Node would do.
func (c *collector) explain(ctx context.Context, _, name string) (introspect.Explanation, bool) {
	node := &corev1.Node{}
	switch err := c.cached.Get(ctx, client.ObjectKey{Name: name}, node); {
	case apierrors.IsNotFound(err):
		return introspect.Explanation{}, false
	case err != nil:
		return introspect.Explanation{Summary: "cannot read it: " + err.Error()}, true
	}
	in := Input{Now: c.now(), Node: node}
	o := c.fleet.outlook(node, in.Now)
	in.Standing = o.Standing
	if isLost(node, in.Silent) {
		in.Pods = c.pods(name)
	}
	return account(in, Decide(in), o).Explanation(), true
}
