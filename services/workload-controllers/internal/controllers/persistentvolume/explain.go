package persistentvolume

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/explain"
	"keelson.dev/kit/introspect"
	"keelson.dev/kit/localvolume"
	"keelson.dev/kit/volumename"
	"keelson.dev/services/workload-controllers/internal/storeindex"
)

// Volumes answers for PersistentVolumes while the controller leads in this process; for claims its Registration does.
type Volumes struct {
	mu      sync.Mutex // guards explain
	explain introspect.Explainer
}

// Explain describes what the controller does with a volume.
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

// explainClaims explains claims without reserving a free volume: a claim that could have one has it already, or a
// pass over it is due.
func (c *Controller) explainClaims() introspect.Explainer {
	steps := c.claimSteps()
	steps.Observe = func(ctx context.Context, claim *corev1.PersistentVolumeClaim) (observedClaim, bool, error) {
		in, err := c.look(ctx, claim)
		if err == nil && in.Class != nil {
			in.unheard, err = c.isUnheard(ctx, in.Class.Provisioner)
		}
		return in, true, err
	}
	return explain.Explainer(steps, claimAccount, nil)
}

// isUnheard reports whether nothing in the API shows that an external provisioner runs: it has no CSIDriver and has
// created no volume. A provisioner that is no CSI driver needs no CSIDriver, so only its first volume shows it.
func (c *Controller) isUnheard(ctx context.Context, provisioner string) (bool, error) {
	if provisioner == noProvisioner || provisioner == localvolume.Driver {
		return false, nil
	}
	driver := volumename.DriverOf(provisioner)
	err := c.client.Get(ctx, client.ObjectKey{Name: driver}, &storagev1.CSIDriver{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking for CSIDriver %s: %w", driver, err)
	}
	made := slices.ContainsFunc(storeindex.All[corev1.PersistentVolume](c.stores.volumes),
		func(volume *corev1.PersistentVolume) bool {
			of, _ := volumename.CSI(volume)
			return of == driver || volume.Annotations[annotationProvisionedBy] == provisioner
		})
	return err != nil && !made, nil
}

// explainVolumes explains volumes.
func (c *Controller) explainVolumes() introspect.Explainer {
	return explain.Explainer(c.volumeSteps(), volumeAccount, nil)
}
