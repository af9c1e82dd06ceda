package persistentvolume

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/introspect"
)

// Volumes answers for PersistentVolumes while the controller leads in this process; for claims its Registration does.
type Volumes struct {
	mu      sync.Mutex // guards explain
	explain introspect.Explainer
}

// Explain tells what the controller does with a volume.
func (v *Volumes) Explain(ctx context.Context, namespace, name string) (introspect.Explanation, bool) {
	v.mu.Lock()
	leads := v.explain
	v.mu.Unlock()
	if leads == nil {
		return introspect.Explanation{Summary: "does not lead workload-controllers." + Name + " here"}, true
	}
	return leads(ctx, namespace, name)
}

func (v *Volumes) lead(e introspect.Explainer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.explain = e
}

// term is the controller between winning its Lease and losing it.
type term struct {
	controller.Runnable
	volumes *Volumes
}

// Start runs the controller until ctx ends.
func (t term) Start(ctx context.Context) error {
	defer t.volumes.lead(nil)
	return t.Runnable.Start(ctx)
}

// explainClaims answers for claims, without taking a free volume in hand: a claim that could have one has it, or a pass
// over it is on its way.
func (c *Controller) explainClaims() introspect.Explainer {
	steps := c.claimSteps()
	steps.Observe = func(ctx context.Context, claim *corev1.PersistentVolumeClaim) (observedClaim, bool, error) {
		in, err := c.look(ctx, claim)
		return in, true, err
	}
	return explain.Explainer(steps, claimAccount, nil)
}

// explainVolumes answers for volumes.
func (c *Controller) explainVolumes() introspect.Explainer {
	return explain.Explainer(c.volumeSteps(), volumeAccount, nil)
}
