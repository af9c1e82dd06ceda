package namespace

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/introspect"
)

// decisions are the last ones about the namespaces that are being emptied. Since a look empties them, nobody else
// looks. It is safe for concurrent use.
type decisions struct {
	mu sync.Mutex // guards of
	of map[types.UID]decision
}

type decision struct {
	Input
	Plan
}

// decide is Decide, remembered.
func (d *decisions) decide(in Input) Plan {
	plan := Decide(in)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[in.Namespace.UID] = decision{in, plan}
	return plan
}

func (d *decisions) forget(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, uid)
}

func (d *decisions) last(uid types.UID) (decision, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, known := d.of[uid]
	return last, known
}

// explain describes what the last look at a namespace found.
func (c *collector) explain(ctx context.Context, _, name string) (introspect.Explanation, bool) {
	ns := &corev1.Namespace{}
	switch err := c.live.Get(ctx, client.ObjectKey{Name: name}, ns); {
	case apierrors.IsNotFound(err):
		return introspect.Explanation{}, false
	case err != nil:
		return introspect.Explanation{Summary: "cannot read it: " + err.Error()}, true
	}
	if last, known := c.last.last(ns.UID); known && NeedsWork(ns) {
		return account(last.Input, last.Plan).Explanation(), true
	}
	return standing(ns).Explanation(), true
}
